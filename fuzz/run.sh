#!/usr/bin/env bash
# Searches for bytes that break the rule of a fuzz target, guided by coverage, on the stable toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<END
usage: fuzz/run.sh NAME [SECONDS [SEED]]
       fuzz/run.sh --all [SECONDS [SEED]]

Searches for SECONDS (default 60, 0 for ever) and ends with an error at the first input that breaks a rule, which it
keeps in fuzz/artifacts/NAME/. What it learns stays in the target directory, so that the next search goes on there.
With SEED, a number, it searches in the same order each time, so that only a change can make it fail.
With --all every target has SECONDS, one after another, also behind one that breaks a rule.
Needs a C++ compiler. NAME is one of: $(cd fuzz/corpus && echo *)
END
}

case "${1:-}" in
    -h | --help)
        usage
        exit 0
        ;;
    --all)
        mapfile -t names < <(cd fuzz/corpus && printf '%s\n' *)
        binaries=(--bins)
        ;;
    *)
        if [ -z "${1:-}" ] || [ ! -d "fuzz/corpus/$1" ]; then
            usage >&2
            exit 2
        fi
        names=("$1")
        binaries=(--bin "$1")
        ;;
esac
seconds=${2:-60}
seed=${3:-0} # 0 is another one each time

# What cargo-fuzz passes as well: counters at the edges of the code, and the operands of its comparisons.
coverage=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
)
export RUSTFLAGS="${RUSTFLAGS:-} ${coverage[*]}"
# Fast, and with the assertions that a rule may rest on.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true

target=${CARGO_TARGET_DIR:-target}
# With a target named, cargo keeps the flags from build scripts, which could not be linked with them.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --quiet --locked --release --target "$host" -p leveret-fuzz --features libfuzzer "${binaries[@]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Searches with the target $1. One target alone shows what it does; among many, only how it ended.
search() {
    local search=("$target/$host/release/$1" -max_total_time="$seconds" -seed="$seed" -artifact_prefix="fuzz/artifacts/$1/"
        "$target/fuzz/$1" "fuzz/corpus/$1")
    mkdir -p "$target/fuzz/$1" "fuzz/artifacts/$1"
    if [ "${#names[@]}" -eq 1 ]; then
        "${search[@]}"
    elif "${search[@]}" >"$log" 2>&1; then
        printf '%s: %s\n' "$1" "$(tail -n 1 "$log")"
    else
        cat "$log"
        printf '%s: FAILED\n' "$1"
        return 1
    fi
}

failed=()
for name in "${names[@]}"; do
    search "$name" || failed+=("$name")
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "a rule is broken: ${failed[*]}; see fuzz/artifacts/" >&2
    exit 1
fi

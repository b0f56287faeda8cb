#!/usr/bin/env bash
# Searches for bytes that break the rule of one fuzz target, guided by coverage, on the stable toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<END
usage: fuzz/run.sh NAME [SECONDS]

Searches for SECONDS (default 60, 0 for ever) and ends with an error at the first input that breaks a rule, which it
keeps in fuzz/artifacts/NAME/. What it learns stays in the target directory, so that the next search goes on there.
Needs a C++ compiler. NAME is one of: $(cd fuzz/corpus && echo *)
END
}

name=${1:-}
if [ "$name" = --help ] || [ "$name" = -h ]; then
    usage
    exit 0
fi
if [ -z "$name" ] || [ ! -d "fuzz/corpus/$name" ]; then
    usage >&2
    exit 2
fi

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
mkdir -p "$target/fuzz/$name" "fuzz/artifacts/$name"
# With a target named, cargo keeps the flags from build scripts, which could not be linked with them.
host=$(rustc -vV | sed -n 's/^host: //p')
exec cargo run --quiet --release --target "$host" -p leveret-fuzz --features libfuzzer --bin "$name" -- \
    -max_total_time="${2:-60}" -artifact_prefix="fuzz/artifacts/$name/" "$target/fuzz/$name" "fuzz/corpus/$name"

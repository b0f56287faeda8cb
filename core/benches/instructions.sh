#!/usr/bin/env bash
# Prints how many instructions a message costs a connection: confirmed publishes, and deliveries with their
# acknowledgements. Counted by callgrind, so the same on a busy machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Both runs begin alike, so their difference is what the messages between them cost.
few=1000
many=11000

if ! command -v valgrind >/dev/null; then
    echo "valgrind is not installed: sudo apt-get install valgrind" >&2
    exit 2
fi
cargo build --quiet --locked --release -p leveret-core --example instructions
program=${CARGO_TARGET_DIR:-target}/release/examples/instructions
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The instructions of one run.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$scratch/$1.$2" "$program" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

for work in publish consume; do
    with_few=$(count "$work" "$few")
    with_many=$(count "$work" "$many")
    printf '%s: %d instructions for each message\n' "$work" "$(((with_many - with_few) / (many - few)))"
    if [ "${1:-}" = --functions ]; then
        callgrind_annotate "$scratch/$work.$many" 2>/dev/null | awk '/file:function/ { on = 1 } on && n++ < 30'
    fi
done

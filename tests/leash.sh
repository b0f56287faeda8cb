#!/usr/bin/env bash
# usage: leash.sh DIR OUTPUT COMMAND [ARGUMENT...]
#
# Runs COMMAND, with its output in the file DIR/OUTPUT, until standard input ends; then kills it with everything
# that it started, waits for the end of that, and removes DIR. Whoever holds the other end of the pipe may panic, be
# killed or just exit: its end closes in any case, so nothing is left behind. When COMMAND ends by itself, its exit
# status is written to DIR/ended.
set -u

dir=$1
output=$2
shift 2

# Job control puts the background job into a process group of its own, which can be killed as a whole.
set -m
{
    "$@" >"$dir/$output" 2>&1 </dev/null
    echo $? >"$dir/ended"
} &
job=$!

# Whether a process of the group still runs: it may hold ports and write files for a moment after it was killed.
# The dead that nobody has collected yet do not count, unless some of their threads have still to end.
running() {
    kill -0 -- "-$job" 2>/dev/null || return 1
    local stat line fields
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <"$stat" || continue
        # After the name in parentheses: state, parent, group, ..., and as the 18th the number of threads.
        read -ra fields <<<"${line##*) }"
        if [ "${fields[2]}" = "$job" ] && { [ "${fields[0]}" != Z ] || [ "${fields[17]}" -gt 1 ]; }; then
            return 0
        fi
    done
    return 1
}

while read -r _; do :; done

kill -KILL -- "-$job" 2>/dev/null
wait "$job" 2>/dev/null
for ((look = 0; look < 200; look++)); do
    running || break
    sleep 0.05
done
rm -rf -- "$dir"

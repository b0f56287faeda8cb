#!/usr/bin/env bash
# The one test command: makes sure that there are brokers to test against, then runs every test.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/apt.sh
. "$here/apt.sh"
cd "$here/.."

usage() {
    cat <<'END'
usage: tests/run.sh [--embedded] [-- ARGUMENT...]

Runs all tests of the workspace. Those that need RabbitMQ take the first of these that is there:

  1. LEVERET_AMQP_URLS   brokers that are running, as AMQP URIs, separated by commas
  2. Docker              a container of LEVERET_RABBITMQ_IMAGE (default rabbitmq:4)
  3. this machine        a rabbitmq-server that the tests start on free ports and stop again. Where it is missing
                         and apt is the package manager, it is installed (as root or with sudo). A RabbitMQ 4
                         from Debian 13's packages is set up beside it, in target/rabbitmq4.

The test of the embedded broker with the Python client pika gets a Python environment in target/python.
Where a broker or pika cannot be had, the tests that need it say that they are skipped. The end of the output lists
them, and its last line counts: "tests: 700 passed, 0 failed, 9 skipped".

  --embedded             installs nothing and needs no RabbitMQ: only what runs on the embedded broker
  -- ARGUMENT...         the rest goes to `cargo test`, such as the name of a test
  --help                 this text

  LEVERET_REQUIRE_BROKER=1   a missing RabbitMQ (either version, where this machine's are used) is a failure
  LEVERET_REQUIRE_PIKA=1     a missing pika is a failure
  LEVERET_PYTHON             the interpreter to use, one that can import pika
END
}

embedded=false
while [ $# -gt 0 ]; do
    case "$1" in
        --embedded) embedded=true ;;
        -h | --help)
            usage
            exit 0
            ;;
        --)
            shift
            break
            ;;
        *)
            say "unknown option $1"
            usage >&2
            exit 2
            ;;
    esac
    shift
done

mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
feature=''

# Ends the run where a missing thing was declared to be a failure, and says what is skipped otherwise.
missing() {
    local required=$1
    shift
    if [ "$required" = 1 ]; then
        say "$*"
        exit 1
    fi
    say "$*: the tests that need it will be skipped"
}

set_up_rabbitmq() {
    if [ -n "${LEVERET_AMQP_URLS:-}" ]; then
        say "using the brokers of LEVERET_AMQP_URLS"
        return
    fi
    if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
        say "a Docker engine answers: RabbitMQ runs in containers"
        feature=leveret-testkit/testcontainers
        return
    fi
    # Not on every user's PATH, but found there by the suite.
    if ! PATH="$PATH:/usr/sbin" command -v rabbitmq-server >/dev/null; then
        if apt_install rabbitmq-server; then
            # Installed for these tests: it has no business on the standard port after the next boot.
            as_root systemctl --quiet disable rabbitmq-server 2>/dev/null || true
        else
            missing "${LEVERET_REQUIRE_BROKER:-}" "no rabbitmq-server"
        fi
    fi
    local root="$target/rabbitmq4"
    if "$here/rabbitmq4.sh" install "$root"; then
        export LEVERET_RABBITMQ4_ROOT="$root"
    else
        missing "${LEVERET_REQUIRE_BROKER:-}" "no RabbitMQ 4"
    fi
}

set_up_pika() {
    if [ -n "${LEVERET_PYTHON:-}" ]; then
        return
    fi
    local python="$target/python"
    if ! "$python/bin/python" -c 'import pika' 2>/dev/null; then
        if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
            apt_install python3-venv || true
        fi
        if ! { python3 -m venv "$python" && "$python/bin/pip" --quiet install 'pika==1.3.2'; }; then
            missing "${LEVERET_REQUIRE_PIKA:-}" "no pika"
            return
        fi
    fi
    export LEVERET_PYTHON="$python/bin/python"
}

if $embedded; then
    # Tells the tests not to look for one.
    export LEVERET_AMQP_URLS=none
    unset LEVERET_REQUIRE_BROKER
else
    set_up_rabbitmq
    set_up_pika
fi

log="$target/tests.log"
status=0
{
    cargo test --workspace --no-fail-fast --all-targets ${feature:+--features "$feature"} "$@" || status=$?
    # The suites turn TLS on for the whole workspace. Without it there is one more thing to say.
    cargo test -p leveret-adapter --no-fail-fast --all-targets "$@" || status=$?
    # Doc tests are not among "all targets".
    cargo test --workspace --no-fail-fast --doc ${feature:+--features "$feature"} "$@" || status=$?
    exit "$status"
} 2>&1 | tee "$log" || status=$?

# The test harness knows `ignored` only: a test that finds nothing to run on says so (leveret_testkit::skip), and
# has passed to the harness. The words may follow the name of a test on its line.
awk '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    (at = index($0, "leveret-testkit: skipped: ")) { skipped[++count] = substr($0, at) }
    END {
        for (n = 1; n <= count; n++) print skipped[n]
        printf "tests: %d passed, %d failed, %d skipped\n", passed - count, failed, ignored + count
    }
' "$log"
exit "$status"

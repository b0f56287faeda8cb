#!/usr/bin/env bash
# RabbitMQ 4 beside whatever the system has: Debian 13's packages in a directory of their own.
set -euo pipefail

# Debian 13, which ships RabbitMQ 4.0.
suite=trixie

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/apt.sh
. "$here/apt.sh"

usage() {
    cat <<'END'
usage: tests/rabbitmq4.sh install ROOT
       tests/rabbitmq4.sh enter ROOT DIR COMMAND [ARGUMENT...]

install  builds a Debian 13 system with RabbitMQ 4 in ROOT (370 MB, about a minute), unless it is there already.
         Needs root or sudo, and debootstrap, which it installs where apt can. The packages come from the
         Debian mirror and through the proxy that apt is configured with. `rm -rf ROOT` undoes it.
enter    runs COMMAND inside ROOT with DIR mounted at /mnt. COMMAND has its own mounts and process numbers:
         when it ends or is killed, nothing of it stays mounted or running. The network is the host's.
END
}

complete() {
    [ -x "$1/usr/lib/rabbitmq/bin/rabbitmq-server" ]
}

# The mirror that apt uses for Debian itself; empty on another distribution, where debootstrap knows one.
debian_mirror() {
    command -v apt-get >/dev/null || return 0
    # shellcheck disable=SC2016  # apt's own placeholders
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}

# debootstrap downloads with wget, which does not read apt's configuration.
take_apt_proxy() {
    command -v apt-config >/dev/null || return 0
    local proxy=''
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then
        export http_proxy="$proxy" https_proxy="$proxy"
    fi
}

install() {
    local root=$1 partial="$1.partial.$$"
    if complete "$root"; then
        return
    fi
    if [ -e "$root" ]; then
        say "$root exists and holds no RabbitMQ: remove it, or name another directory"
        return 1
    fi
    if ! can_be_root; then
        say "building $root needs root or sudo"
        return 1
    fi
    # What `enter` needs as well: better said now than after a minute.
    if ! as_root unshare --mount --pid --fork true; then
        say "cannot make a mount namespace here (a container without CAP_SYS_ADMIN?): no RabbitMQ 4"
        return 1
    fi
    if ! command -v debootstrap >/dev/null || [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
        apt_install debootstrap debian-archive-keyring
    fi
    take_apt_proxy
    mkdir -p "$(dirname "$root")"
    # shellcheck disable=SC2064  # the name is known now
    trap "as_root rm -rf --one-file-system '$partial'" EXIT
    say "building Debian $suite with RabbitMQ 4 in $root: about a minute"
    local mirror
    mirror=$(debian_mirror)
    # In a mount namespace, so that nothing which debootstrap mounts outlives it.
    # shellcheck disable=SC2086  # an empty mirror is no argument
    if ! as_root env http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
        unshare --mount debootstrap --variant=minbase --include=rabbitmq-server \
        "$suite" "$partial" $mirror >"$root.log" 2>&1; then
        say "debootstrap failed; the end of $root.log:"
        tail -n 20 "$root.log" >&2
        return 1
    fi
    # Built aside and renamed: a directory with this name is a complete one.
    if ! as_root mv -T "$partial" "$root" && ! complete "$root"; then
        return 1
    fi
}

enter() {
    local root=$1 dir=$2
    shift 2
    local namespaces=(--mount --pid --fork --kill-child=KILL)
    if [ "$(id -u)" != 0 ]; then
        namespaces+=(--user --map-root-user)
    fi
    # shellcheck disable=SC2016  # the inner shell's own variables
    exec unshare "${namespaces[@]}" -- sh -euc '
        root=$1
        mount --bind "$2" "$root/mnt"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        shift 2
        exec chroot "$root" "$@"
    ' sh "$root" "$dir" "$@"
}

case "${1:-}" in
    install)
        [ $# = 2 ] || { usage >&2; exit 2; }
        install "$2"
        ;;
    enter)
        [ $# -ge 4 ] || { usage >&2; exit 2; }
        enter "${@:2}"
        ;;
    -h | --help | help)
        usage
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac

# shellcheck shell=bash
# Sourced by the scripts beside it: saying things, becoming root, and packages where apt is the manager.

say() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

can_be_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }
}

# Installs the named packages; fails with the reason, and with what to do, where that is not possible.
apt_install() {
    if ! command -v apt-get >/dev/null; then
        say "cannot install $*: this system has no apt. Install the equivalent with its own package manager."
        return 1
    fi
    if ! can_be_root; then
        say "cannot install $*: that needs root. Run as root: apt-get install $*"
        return 1
    fi
    say "installing $*"
    (
        # A server package starts its service at once. The suites start servers of their own, on free ports,
        # so nothing may be started here: this is Debian's switch for that.
        policy=/usr/sbin/policy-rc.d
        if [ ! -e "$policy" ]; then
            trap 'as_root rm -f "$policy"' EXIT
            printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod 755 "$policy"
        fi
        as_root apt-get -qq update &&
            as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get -qq install -y --no-install-recommends "$@" >&2
    )
}

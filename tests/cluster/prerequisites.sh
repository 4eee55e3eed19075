#!/bin/sh
# Installs the Debian packages of a purpose, exactly those that are missing; instant when none is.
#
#   prerequisites.sh run      what the tests and the demo run with (the default)
#   prerequisites.sh images   what the base image is built with
#   prerequisites.sh build    what kube-apiserver is built with
set -eu

PATH=$PATH:/usr/sbin:/sbin
missing=""

# needs <command> <package>: what counts is the command, wherever it comes from.
needs() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

needs_package() {
    state=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $1"
}

case ${1:-run} in
run)
    needs docker docker.io
    needs docker-compose docker-compose
    needs kubectl kubernetes-client
    needs openssl openssl
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
    needs git git
    needs tmux tmux
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
    if ! docker version >/dev/null 2>&1; then
        needs dockerd docker.io
        needs iptables iptables
    fi
    ;;
images)
    needs debootstrap debootstrap
    ;;
build)
    needs go golang-go
    needs rsync rsync
    needs jq jq
    needs make make
    needs dpkg-source dpkg-dev
    needs_package golang-github-modern-go-reflect2-dev
    needs_package golang-github-json-iterator-go-dev
    ;;
*)
    echo "usage: $0 [run|images|build]" >&2
    exit 2
    ;;
esac
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here to install what is missing:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Only root can install what is missing:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
echo "Installing Debian packages (up to a minute):$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# A package that starts its service here would be a second engine in this network namespace.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
apt-get -qq -o DPkg::Lock::Timeout=300 update >&2
# shellcheck disable=SC2086
apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends $missing >/dev/null

#!/bin/sh
# Installs the Debian packages that the test cluster is built from; instant when all are there.
set -eu

packages="docker.io iptables docker-compose debootstrap busybox-static openssl python3-venv
golang-go rsync jq dpkg-dev make git
golang-github-modern-go-reflect2-dev golang-github-json-iterator-go-dev"
command -v kubectl >/dev/null || packages="$packages kubernetes-client"

missing=""
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "These Debian packages are missing, and only root can install them:$missing" >&2
    exit 1
fi
echo "Installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
# A package that starts its service here would be a second engine in this network namespace.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null

#!/usr/bin/env bash
# Gets a Debian or Ubuntu machine ready for the tests and the demo: the system packages that are
# missing, and .venv with the exact versions of requirements-dev.lock. Quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

packages=()
reasons=()

need() { # package, what it is for
    packages+=("$1")
    reasons+=("  $1: $2")
}

available() { # package
    # No pipe into grep -q: it ends at the first match, and apt-cache then fails on the closed pipe.
    [[ $(apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [0-9] ]]
}

newest_java() {
    local version
    for version in 25 21 17; do
        if available openjdk-$version-jre-headless; then
            echo openjdk-$version-jre-headless
            return
        fi
    done
    return 1
}

archives_classes() { # the Java that is there starts Spark in half the time, from its second start on
    local home
    home=$(scripts/java_home.sh) && ! "$home/bin/java" -version 2>&1 | grep -F 'version "17' >/dev/null
}

find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.11 python3.12 python3.13 /usr/bin/python3; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
            >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    return 1
}

find_server() {
    PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v mariadbd >/dev/null
}

collect_missing() {
    packages=()
    reasons=()
    find_python >/dev/null || need python3-venv "Python 3.11 or newer, with venv"
    find_server || need mariadb-server "private MariaDB servers"
    if ! scripts/java_home.sh >/dev/null; then
        need "$(newest_java || echo openjdk-21-jre-headless)" "Spark (Java 17, 21 or 25)"
    fi
    if [ "$(uname -m)" = x86_64 ] && ! command -v npm >/dev/null; then
        need npm "fetching the private MySQL 5.6 servers"
    fi
    if ! command -v git >/dev/null; then
        need git "the tests that look at all files of the project"
    fi
}

as_root=()
may_install() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] && return 0
    as_root=(sudo -n)
    sudo -n true 2>/dev/null
}

give_up() {
    {
        echo "This machine lacks:"
        printf '%s\n' "${reasons[@]}"
        echo "$1"
        echo "  sudo apt-get install --no-install-recommends ${packages[*]}"
    } >&2
    exit 1
}

collect_missing
if [ ${#packages[@]} -gt 0 ]; then
    may_install || give_up "They can't be installed from here (no apt-get, or no root). Run:"
    "${as_root[@]}" apt-get update -qq
    collect_missing # which Java there is was not known before the update
    echo "Installing ${packages[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${packages[@]}"
    collect_missing
    [ ${#packages[@]} -eq 0 ] || give_up "The packages were installed, yet this is missing. Try:"
fi

if ! command -v pt-online-schema-change >/dev/null && may_install && available percona-toolkit; then
    # Some tests use it and are skipped without it.
    echo "Installing percona-toolkit"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends percona-toolkit >/dev/null ||
        echo "percona-toolkit can't be installed: tests with pt-online-schema-change are skipped"
fi

galera=/usr/lib/galera/libgalera_smm.so
if { [ ! -e $galera ] || ! command -v rsync || ! command -v lsof; } >/dev/null &&
    may_install && available galera-4; then
    # Nodes of a cluster, which copy their data with rsync. Without it their tests are skipped.
    echo "Installing galera-4 and rsync"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends galera-4 rsync lsof >/dev/null ||
        echo "galera-4 and rsync can't be installed: tests with Galera clusters are skipped"
fi

if ! command -v tmux >/dev/null && may_install && available tmux; then
    # The tests of screens use it and are skipped without it.
    echo "Installing tmux"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends tmux >/dev/null ||
        echo "tmux can't be installed: tests of screens are skipped"
fi

if ! archives_classes && may_install && newer=$(newest_java) && [ "$newer" != openjdk-17-jre-headless ]; then
    echo "Installing $newer, with which Spark starts faster than with Java 17"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$newer" >/dev/null ||
        echo "$newer can't be installed: Spark runs on Java 17"
fi

if [ -L .venv ]; then
    # It is another checkout's: making it anew would take it away under whatever runs there.
    echo ".venv is $(readlink -f .venv), which is made there"
    exit 0
fi
python=$(find_python)
key=$({ "$python" -V && pwd && cat requirements-dev.lock pyproject.toml; } | sha256sum)
stamp=.venv/set-up
if [ -e $stamp ] && [ "$(cat $stamp)" = "$key" ]; then
    exit 0
fi
if [ -L .venv ]; then
    echo ".venv is a link: it belongs to another checkout, and is left as it is"
    exit 0
fi
echo "Making .venv with $("$python" -V)"
"$python" -m venv --clear .venv
pip=(.venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check)
# Nothing is installed that is not, to the byte, what the lock names. PySpark comes as source: its
# build back end is installed first, from the lock as well, or pip would fetch any for the build.
back_end=$(mktemp)
trap 'rm -f "$back_end"' EXIT
sed -n '/^setuptools==/,/[^\\]$/p' requirements-dev.lock >"$back_end"
"${pip[@]}" --require-hashes --no-deps --requirement "$back_end"
"${pip[@]}" --require-hashes --no-deps --use-pep517 --no-build-isolation \
    --requirement requirements-dev.lock
"${pip[@]}" --no-deps --no-build-isolation --editable .
.venv/bin/python -m pip check
echo "Compiling loops"
.venv/bin/python -c "import replicator.pipeline.apply.job"
printf '%s\n' "$key" >$stamp

#!/usr/bin/env bash
# Prints the home of a Java 17 or 21, the versions that Spark 4 runs on; fails if there is none.
# JAVA_HOME comes first, then the java on the PATH, then what Debian and Ubuntu install.
set -euo pipefail

fits() {
    [ -x "$1/bin/java" ] || return 1
    local version
    version=$("$1/bin/java" -version 2>&1) || return 1
    [[ $version =~ version\ \"(17|21)[.\"] ]]
}

candidates=()
[ -n "${JAVA_HOME:-}" ] && candidates+=("$JAVA_HOME")
if on_path=$(command -v java); then
    candidates+=("$(dirname "$(dirname "$(readlink -f "$on_path")")")")
fi
candidates+=(/usr/lib/jvm/*)

for home in "${candidates[@]}"; do
    if fits "$home"; then
        printf '%s\n' "$home"
        exit 0
    fi
done
exit 1

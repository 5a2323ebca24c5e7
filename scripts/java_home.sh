#!/usr/bin/env bash
# Prints the home of a Java that Spark 4.3 runs on (25, 21 or 17); fails if there is none.
# JAVA_HOME comes first, then the newest of the java on the PATH and what Debian and Ubuntu install.
set -euo pipefail

version_of() { # home
    local told
    [ -x "$1/bin/java" ] || return 0
    told=$("$1/bin/java" -version 2>&1) || return 0
    [[ $told =~ version\ \"(25|21|17)[.\"] ]] && printf '%s\n' "${BASH_REMATCH[1]}"
    return 0
}

if [ -n "${JAVA_HOME:-}" ] && [ -n "$(version_of "$JAVA_HOME")" ]; then
    printf '%s\n' "$JAVA_HOME"
    exit 0
fi

candidates=(/usr/lib/jvm/*)
if on_path=$(command -v java); then
    candidates=("$(dirname "$(dirname "$(readlink -f "$on_path")")")" "${candidates[@]}")
fi

newest=0
for candidate in "${candidates[@]}"; do
    version=$(version_of "$candidate")
    if [ "${version:-0}" -gt "$newest" ]; then
        newest=$version
        home=$candidate
    fi
done
[ "$newest" -gt 0 ] || exit 1
printf '%s\n' "$home"

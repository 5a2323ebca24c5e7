#!/usr/bin/env bash
# Writes requirements-dev.lock anew, with the hashes of all files that a version has: with the newest
# versions that pyproject.toml allows, or with those that it has, and what is missing (--keep).
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
python="$folder/venv/bin/python"
"$python" - >"$folder/wanted.in" <<'PY'
import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
dev = project["optional-dependencies"]["dev"]
print(*settings["build-system"]["requires"], *project["dependencies"], *dev, sep="\n")
PY
"$python" -m pip install --quiet --disable-pip-version-check pip-tools
if [ "${1:-}" = --keep ]; then
    cp requirements-dev.lock "$folder/lock"
fi
"$python" -m piptools compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
    --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-options --resolver=backtracking \
    --output-file "$folder/lock" "$folder/wanted.in"
{
    echo "# Exact versions of everything in .venv, also of what pyproject.toml asks for indirectly, and the"
    echo "# SHA-256 of each of their files. Made by \`make lock\`; do not edit."
    cat "$folder/lock"
} >"$folder/whole"
mv "$folder/whole" requirements-dev.lock
# What of it the program needs, the installed packages tell.
scripts/setup.sh
.venv/bin/python -m scripts.runtime_lock >"$folder/runtime"
mv "$folder/runtime" requirements.lock

#!/usr/bin/env bash
# Writes requirements-dev.lock anew: the newest versions that pyproject.toml allows.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
python="$folder/venv/bin/python"
"$python" - >"$folder/wanted" <<'PY'
import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
dev = project["optional-dependencies"]["dev"]
print(*settings["build-system"]["requires"], *project["dependencies"], *dev, sep="\n")
PY
"$python" -m pip install --quiet --disable-pip-version-check --requirement "$folder/wanted"
{
    echo "# Exact versions of everything in .venv, also of what pyproject.toml asks for indirectly."
    echo "# Made by \`make lock\`; do not edit."
    "$python" -m pip freeze --all | grep -v '^pip=='
} >"$folder/lock"
mv "$folder/lock" requirements-dev.lock

"""Nothing is installed that the lock does not name to the byte."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
PINNED = re.findall(
    r"^([A-Za-z0-9_.-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", LOCK, re.MULTILINE
)


def test_every_line_is_an_exact_version_with_its_hashes() -> None:
    rest = re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE)
    for name, version, hashes in PINNED:
        rest = rest.replace(f"{name}=={version}{hashes}\n", "", 1)
    assert rest.strip() == ""


def test_all_that_is_asked_for_is_in_it() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    wanted = [
        *settings["build-system"]["requires"],
        *project["dependencies"],
        *project["optional-dependencies"]["dev"],
    ]
    names = {re.split(r"[^A-Za-z0-9_-]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names - {name.lower().replace("_", "-") for name, *_ in PINNED} == set()


def test_pip_is_told_to_look_at_them() -> None:
    script = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8").replace("\\\n", " ")
    installs = [line for line in script.splitlines() if line.startswith('"${pip[@]}"')]
    assert len(installs) == 3
    assert all("--require-hashes" in line for line in installs if "--requirement" in line)
    assert all("--no-build-isolation" in line or "back_end" in line for line in installs)

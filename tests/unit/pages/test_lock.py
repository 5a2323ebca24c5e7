"""Nothing is installed that the lock does not name to the byte."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

from scripts.runtime_lock import runtime_lock

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


def test_all_of_it_installs_on_debian_12() -> None:
    """Which the pages name, and whose Python is 3.11.2."""
    refused = {
        name
        for name, *_ in PINNED
        if "3.11.2" not in SpecifierSet(str(metadata(name).json.get("requires_python", "")))
    }
    assert refused == set()


def test_pip_is_told_to_look_at_them() -> None:
    script = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8").replace("\\\n", " ")
    installs = [line for line in script.splitlines() if line.startswith('"${pip[@]}"')]
    assert len(installs) == 3
    assert all("--require-hashes" in line for line in installs if "--requirement" in line)
    assert all("--no-build-isolation" in line or "back_end" in line for line in installs)


def test_what_the_program_needs_is_the_same_in_both() -> None:
    """`make lock` writes requirements.lock, from which the image of a container is built."""
    assert (ROOT / "requirements.lock").read_text(encoding="utf-8") == runtime_lock()


def test_the_image_takes_no_more_than_that_and_no_root() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    *_, installs = [line for line in lines if "requirements.lock" in line]
    pip = installs.split("&&")
    assert all("--require-hashes" in step for step in pip if "--requirement" in step)
    assert "--no-deps" in installs
    instructions = [line.split()[0] for line in lines if re.match(r"[A-Z]+ ", line)]
    stages = [line for line in lines if line.startswith("FROM")]
    assert stages == ["FROM ${BASE} AS build", "FROM ${BASE}"]
    assert instructions.index("USER") < instructions.index("ENTRYPOINT")
    assert "USER replicator" in lines
    assert 'ENTRYPOINT ["tini", "--", "replicator"]' in lines

"""docs/inside/dependencies.md says of each dependency why it is there, and of no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9_-]", requirement)[0] for requirement in requirements}


def listed(section: str) -> set[str]:
    page = (ROOT / "docs" / "inside" / "dependencies.md").read_text(encoding="utf-8")
    text = page.split(f"## {section}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \| .+ \|$", text, re.MULTILINE)
    return set(re.findall(r"`([^`]+)`", " ".join(cells)))


def test_dependencies_are_listed_where_they_belong() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    build = names(settings["build-system"]["requires"])
    assert listed("At run time") == names(project["dependencies"])
    assert listed("For development") == names(project["optional-dependencies"]["dev"]) | build

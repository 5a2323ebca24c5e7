"""Prints the part of requirements-dev.lock that the program needs to run, without what tests need.

    .venv/bin/python -m scripts.runtime_lock > requirements.lock

Which package needs which, the installed ones say: run it where the whole lock is installed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHOLE, PROJECT = ROOT / "requirements-dev.lock", ROOT / "pyproject.toml"
HEAD = """\
# Exact versions of everything that the program needs, and the SHA-256 of each of their files. Made
# by `make lock`; do not edit.
"""


def folded(name: str) -> str:
    """A name as packages are compared by (PyPA, "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed() -> set[str]:
    """What the program needs, and what builds PySpark, which comes as source."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    found: set[str] = set()
    wanted = _names([*project["dependencies"], "setuptools"])
    while wanted:
        name = folded(wanted.pop())
        if name in found:
            continue
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            # Another platform's.
            continue
        found.add(name)
        wanted += _names(text for text in requires if "extra ==" not in text)
    return found


def _names(requirements: Iterable[str]) -> list[str]:
    return [match[0] for text in requirements if (match := re.match(r"[\w.-]+", text))]


def runtime_lock() -> str:
    """The text of requirements.lock."""
    kept = needed()
    parts = re.split(r"^(?=[\w.-]+==)", WHOLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return HEAD + "".join(part for part in parts if folded(part.partition("==")[0]) in kept)


if __name__ == "__main__":
    sys.stdout.write(runtime_lock())

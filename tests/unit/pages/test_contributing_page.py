"""CONTRIBUTING.md names only files that are there, but for those that a change would add."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHANGES = PAGE[PAGE.index("| change | new |") : PAGE.index("## Rules")]


def paths(text: str) -> set[str]:
    return set(re.findall(r"`([a-z0-9_]+/[a-z0-9_/*]*(?:\.py)?)`", text))


def planned() -> set[str]:
    """The modules of the column of new ones."""
    rows = [line.split("|") for line in CHANGES.splitlines() if line.startswith("|")]
    return {path for row in rows for path in paths(row[2]) if path.endswith(".py")}


def there(path: str) -> bool:
    return any(True for _ in ROOT.glob(path.rstrip("/")))


def test_the_files_that_are_named_exist() -> None:
    named = paths(PAGE) - planned()
    assert len(named) > 40
    assert sorted(path for path in named if not there(path)) == []


def test_a_new_module_has_a_room_and_is_not_there_yet() -> None:
    assert len(planned()) > 3
    assert sorted(path for path in planned() if not (ROOT / path).parent.is_dir()) == []
    assert sorted(path for path in planned() if there(path)) == []

"""CONTRIBUTING.md names only files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_files_that_are_named_exist() -> None:
    named = set(re.findall(r"`([a-z0-9_]+/[a-z0-9_/*]*(?:\.py)?)`", PAGE))
    assert len(named) > 40
    assert sorted(path for path in named if not any(ROOT.glob(path.rstrip("/")))) == []


def test_ten_changes_are_shown() -> None:
    table = PAGE[PAGE.index("| to change |") : PAGE.index("The way of a row")]
    assert table.count("\n| ") == 10

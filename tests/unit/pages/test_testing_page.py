"""The pages about tests name every failpoint, and only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from replicator.failpoints import Failpoint

ROOT = Path(__file__).parents[3]
PAGE = "".join(
    (ROOT / "docs" / "inside" / name).read_text(encoding="utf-8")
    for name in ("testing.md", "caught-faults.md")
)


def test_every_failpoint_is_in_the_table() -> None:
    table = PAGE.split("| step | where the process dies |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(Failpoint)


def test_the_tests_that_are_named_exist() -> None:
    named = set(re.findall(r"`(tests/[a-z0-9_/]+(?:\.(?:py|txt))?)`?", PAGE))
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []

"""What a release takes from the changelog."""

from __future__ import annotations

import pytest

from scripts.release import section_of

CHANGELOG = """\
# Changelog

## 0.2.0 (not released)

* New.

## 0.1.0 (2026-01-02)

* First.
* Second.

## 0.0.9 (2025-12-01)

* Older.
"""


def test_the_section_of_a_version_is_what_stands_below_its_heading() -> None:
    assert section_of(CHANGELOG, "0.1.0") == "* First.\n* Second.\n"
    assert section_of(CHANGELOG, "0.0.9") == "* Older.\n"


@pytest.mark.parametrize(("version", "told"), [("0.2.0", "not released"), ("0.3.0", "no section")])
def test_what_is_not_to_be_released_is_told(version: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        section_of(CHANGELOG, version)

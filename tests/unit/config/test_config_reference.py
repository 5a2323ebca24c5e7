"""The reference page is up to date, and its tables of keys fit the models."""

from __future__ import annotations

from pathlib import Path

import pytest

import config
from config.keys import pattern_of, walk
from config.models import Task
from config.no_effect import IGNORED, NO_EFFECT
from config.old_spellings import RENAMED
from config.reference import reference_page
from config.unsupported import UNSUPPORTED

PAGE = Path(config.__file__).parent.parent / "docs" / "task-file.md"
PATTERNS = {pattern_of(place) for place, _ in walk(Task)}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), (
        "run: python -m config.reference > docs/task-file.md"
    )


def test_every_key_has_a_meaning() -> None:
    assert [place for place, field in walk(Task) if not field.description] == []


@pytest.mark.parametrize(
    "entry", [*UNSUPPORTED, *NO_EFFECT, *IGNORED], ids=lambda entry: entry.pattern
)
def test_listed_keys_exist(entry: object) -> None:
    assert getattr(entry, "pattern", "").removesuffix(".*") in PATTERNS


def test_old_spellings_lead_to_keys() -> None:
    for pattern, old, new in RENAMED:
        assert f"{pattern}.{new}".lstrip(".") in PATTERNS
        assert f"{pattern}.{old}".lstrip(".") not in PATTERNS


def test_what_is_supported_is_told_by_task_mode() -> None:
    def of(key: str) -> str:
        (row,) = [row for row in reference_page().splitlines() if row.startswith(f"| `{key}` |")]
        return row.split(" | ")[-1].removesuffix(" |")

    assert of("task-mode") == "yes"
    assert of("threads") == "no effect: `incremental`"
    assert of("meta") == "no effect: `full`, `all`"
    assert of("extra-args") == "no effect"
    assert of("where") == "not yet"


@pytest.mark.parametrize(
    "row",
    [
        "| `buckets` | whole number | `4` |",
        "| `batch-bytes` | size | none |",
        "| `largest-event` | size | none |",
        "| `chunk-filesize` | size | `64MiB` |",
        "| `password` | text, secret |",
    ],
)
def test_the_page_shows(row: str) -> None:
    assert row in reference_page()

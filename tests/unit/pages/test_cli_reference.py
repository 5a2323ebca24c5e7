"""The reference page of the command line is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.cli_reference import reference_page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), (
        "run: python -m scripts.cli_reference > docs/reference/cli.md"
    )


@pytest.mark.parametrize(
    "line",
    [
        "## `replicator status [--all] [--json] [--watch] [--exit-code] [TASK]`",
        "| `--on-error {pause,exit}` | `pause` | At a fault that needs you: pause and wait, or"
        " exit with 1. |",
        "| `--seconds N` | `30` | How long to write to the shards. |",
    ],
)
def test_the_page_shows(line: str) -> None:
    assert line in reference_page().splitlines()

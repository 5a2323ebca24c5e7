"""docs/reference/messages.md has the texts that the messages of faults pass on."""

from __future__ import annotations

from pathlib import Path

from replicator.events.fault_catalogue import FAULT_SECTIONS
from scripts.messages_reference import CAUSES, page, passed_texts

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "messages.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m scripts.messages_reference > docs/reference/messages.md"
    )


def test_the_errors_that_a_fault_passes_on_are_listed_with_it() -> None:
    assert {passed.event for passed in passed_texts()} == set(CAUSES)
    assert set(CAUSES) <= FAULT_SECTIONS.keys()

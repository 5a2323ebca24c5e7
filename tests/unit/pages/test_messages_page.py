"""docs/reference/messages.md has the messages of the program, one for each fault at least."""

from __future__ import annotations

from pathlib import Path

from replicator.events.all_events import EVENTS
from scripts.messages_reference import CAUSES, messages, page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "messages.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m scripts.messages_reference > docs/reference/messages.md"
    )


def test_every_fault_has_a_message_there() -> None:
    listed = {message.event for message in messages()}
    assert {event.name for event in EVENTS if event.fault} <= listed
    assert all(message.text for message in messages())


def test_the_errors_that_a_fault_passes_on_are_listed_with_it() -> None:
    assert {message.event for message in messages() if message.cause} == set(CAUSES)

"""docs/inside/actors.md: the actors and their messages are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from actors.mailboxes.messages import GroupMessage, WriterMessage
from actors.sharding.pessimistic.lock_messages import LockMessage

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "inside" / "actors.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`[^|]+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
WITHOUT_MAILBOX = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
MESSAGES = {
    message.__name__
    for union in (WriterMessage, GroupMessage, LockMessage)
    for message in get_args(union)
}


def names(text: str) -> set[str]:
    return set(re.findall("`([^`]+)`", text))


def received_by(actor: str) -> set[str]:
    return (
        next(names(received) for actors, received, _ in ROWS if actor in names(actors)) & MESSAGES
    )


@pytest.mark.parametrize(
    ("actor", "messages"),
    [
        ("BatchedWriter", WriterMessage),
        ("PessimisticGroup", GroupMessage),
        ("LockCoordinator", LockMessage),
    ],
)
def test_an_actor_receives_what_its_mailbox_takes(actor: str, messages: object) -> None:
    assert received_by(actor) == {message.__name__ for message in get_args(messages)}


def test_what_is_received_is_sent_by_somebody() -> None:
    of_itself = {"BatchDone", "BatchCut", "DdlDone", "Unlock"}
    sent = {name for _, _, sends in ROWS for name in names(sends)}
    sent |= {name for _, does in WITHOUT_MAILBOX for name in names(does) & MESSAGES}
    assert sent == MESSAGES - of_itself


def test_the_actors_exist() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "actors").rglob("*.py"))
    actors = {name for row in [*ROWS, *WITHOUT_MAILBOX] for name in names(row[0])}
    assert len(actors) > 10
    assert {actor for actor in actors if f"class {actor}" not in code} == set()

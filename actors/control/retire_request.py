"""Retires shards of a running task, as `replicator retire` does."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import anyio

from actors.control.end_positions import remedies_for
from actors.control.protocol import CommandRefusedError, ControlError
from actors.control.requests import command, status_of
from actors.control.waiting import (
    FINAL_SECONDS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PATIENCE,
    status_remedy,
)

Shard = tuple[str, str, str]
"""A source, a schema and a table."""


def parse_shard(text: str) -> Shard:
    """Parse SOURCE:SCHEMA.TABLE; names with a colon, a dot or a backquote are in backquotes.

    Raises ValueError.
    """
    parts, separators = [""], list[str]()
    quoted = False
    for letter in text:
        if letter == "`":
            # A doubled backquote inside a quoted name stands for one backquote.
            quoted = not quoted
            parts[-1] += letter
        elif not quoted and letter == (":", ".", "")[len(separators)]:
            separators.append(letter)
            parts.append("")
        else:
            parts[-1] += letter
    source, *names = (_unquoted(part) for part in parts)
    if quoted or len(names) != 2 or not all((source, *names)):
        raise ValueError(f"{text!r} is no shard: SOURCE:SCHEMA.TABLE, as `replicator shards` names")
    return source, names[0], names[1]


def _unquoted(part: str) -> str:
    whole = len(part) > 1 and part[0] == part[-1] == "`"
    return part[1:-1].replace("``", "`") if whole else part


async def retire_shards(
    name: str,
    sources: Collection[str],
    shards: Sequence[Shard],
    timeout: float | None = None,  # noqa: ASYNC109
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Have a task retire shards, and wait until it has; return why it has not, and the remedies.

    Both results are empty if it has. Raises NotRunningError and ControlError.

    Args:
        sources: the sources of which all shards are retired.
        timeout: maximum seconds to wait; None for no limit.
    """
    ends = (await command(name, "ends")).body["ends"]
    named = {*sources, *(source for source, *_ in shards)}
    arguments: dict[str, Any] = {
        "sources": list(sources),
        "shards": [list(shard) for shard in shards],
        "ends": {source: end for source, end in ends.items() if source in named},
    }
    begun, final_since, failures, pause = time.monotonic(), None, 0, FIRST_PAUSE
    while True:
        try:
            body = (await command(name, "retire", arguments)).body
            failures = 0
        except CommandRefusedError:
            raise
        except ControlError:
            failures += 1
            if failures > PATIENCE:
                raise
            body = {"done": False, "reasons": [], "final": False}
        if body["done"]:
            return (), ()
        now = time.monotonic()
        final_since = (final_since or now) if body["final"] else None
        late = timeout is not None and now - begun >= timeout
        if late or (final_since is not None and now - final_since >= FINAL_SECONDS):
            remedies: tuple[str, ...] = ()
            if body["final"]:
                remedies = remedies_for(await status_of(name), named, body["targets"])
            return (*body["reasons"],) or ("the time is over",), remedies or (status_remedy(name),)
        await anyio.sleep(pause)
        pause = min(LONGEST_PAUSE, 1.5 * pause)

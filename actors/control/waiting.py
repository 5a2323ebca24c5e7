"""Waits until a running task has applied everything up to an end, as `replicator wait` does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from actors.control.arguments import Until
from actors.control.client import NotRunningError, RunsElsewhereError
from actors.control.end_positions import EndVerdict, parse_until, verdict
from actors.control.protocol import ControlError
from actors.control.requests import command, status_of
from replicator.binlog.positions.position import BinlogPosition
from replicator.status import SourceStatus, TaskStatus
from replicator.status_json import plain

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two requests to the task; the pause grows while nothing changes."""

FINAL_SECONDS = 2.0
"""Seconds for which a reason has to last before the wait ends."""

START_SECONDS = 20.0
"""Maximum seconds until a task can be asked: `run` may have been started just before."""

PATIENCE = 3
"""Number of successive requests that may fail, because the task may be about to end."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The result of waiting.

    Attributes:
        task: the task's name.
        reached: whether everything up to the end is applied.
        seconds: duration of the wait.
        reasons: what the task waits for, if the end is not reached.
        until: by source, the end as text; for a time, that time.
        sources: how far each source is.
        timed_out: whether the task may still reach the end.
        remedies: what the operator can do, if the end is not reached.
    """

    task: str
    reached: bool
    seconds: float
    reasons: tuple[str, ...] = ()
    until: dict[str, str] = field(default_factory=dict)
    sources: tuple[SourceStatus, ...] = ()
    timed_out: bool = False
    remedies: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {
            "task": self.task,
            "applied": self.reached,
            "timed_out": self.timed_out,
            "seconds": round(self.seconds, 3),
            "reasons": list(self.reasons),
            "remedies": list(self.remedies),
            "sources": [
                {
                    "source": source.source,
                    "until": self.until.get(source.source),
                    "complete_position": source.complete_position,
                    "complete_gtid": source.complete_gtid,
                    "complete_until": plain(source.complete_until),
                }
                for source in self.sources
            ],
        }


async def wait_until(name: str, given: Sequence[str], timeout: float | None = None) -> Waited:  # noqa: ASYNC109
    """Wait until a task has applied everything up to an end, or somebody has to act.

    Args:
        name: the task.
        given: the end, as `parse_until` takes it.
        timeout: maximum seconds to wait; None for no limit.

    Raises ValueError for an end that can't be parsed, NotRunningError and ControlError.
    """
    begun = time.monotonic()
    waiting = _Waiting(name, given)
    pause, final_since, failures = FIRST_PAUSE, None, 0
    while True:
        try:
            found = await waiting.look()
            failures = 0
        except ControlError:
            failures += 1
            if failures > PATIENCE:
                raise
            found = replace(waiting.last, final=False)
        now = time.monotonic()
        final_since = (final_since or now) if found.final else None
        given_up = final_since is not None and now - final_since >= FINAL_SECONDS
        late = timeout is not None and now - begun >= timeout
        if found.reached or given_up or late:
            return waiting.result(found, now - begun, timed_out=late and not given_up)
        await anyio.sleep(pause)
        pause = min(LONGEST_PAUSE, 1.5 * pause)


async def wait_after_start(
    name: str,
    given: Sequence[str],
    timeout: float | None = None,  # noqa: ASYNC109
) -> Waited:
    """Do the same as `wait_until`, but give a task that does not run `START_SECONDS` to start."""
    begun = time.monotonic()
    most = START_SECONDS if timeout is None else min(START_SECONDS, timeout)
    while True:
        waited = time.monotonic() - begun
        try:
            return await wait_until(name, given, None if timeout is None else timeout - waited)
        except NotRunningError as error:
            if isinstance(error, RunsElsewhereError) or waited >= most:
                raise
        await anyio.sleep(LONGEST_PAUSE)


def status_remedy(task: str) -> str:
    """Return the remedy for the case that nothing is known that somebody has to do."""
    return f"`replicator status {task}` shows what the task does; then repeat this command"


class _Waiting:
    """The state of a wait: the end, the ends of the binlogs, and the last answers."""

    def __init__(self, name: str, given: Sequence[str]) -> None:
        self._name = name
        self._given = given
        self._ends: dict[str, BinlogPosition | None] = {}
        self._away: dict[str, str] | None = None
        self._status: TaskStatus | None = None
        self._until: Until | None = None
        self.last = EndVerdict()

    async def look(self) -> EndVerdict:
        """Ask the task. Raises the same errors as `wait_until`."""
        if self._away is None or self._away:
            body = (await command(self._name, "ends")).body
            ends, self._away = body["ends"], dict(body["away"])
            for source, text in ends.items():
                # Later transactions of a source that was away are not waited for a second time.
                self._ends.setdefault(source, BinlogPosition.parse(text) if text else None)
        if self._until is None:
            self._until = parse_until(self._given, [*self._ends, *self._away])
        self._status = await status_of(self._name)
        self.last = verdict(self._until, self._ends, self._status)
        return self.last

    def result(self, found: EndVerdict, seconds: float, *, timed_out: bool) -> Waited:
        """Return the result of the wait."""
        reasons = () if found.reached else found.reasons
        away = [f"{source}: {reason}" for source, reason in (self._away or {}).items()]
        return Waited(
            self._name,
            found.reached,
            seconds,
            (*reasons, *(() if found.reached else away)),
            self._texts(),
            self._status.sources if self._status else (),
            timed_out and not found.reached,
            () if found.reached else found.remedies or (status_remedy(self._name),),
        )

    def _texts(self) -> dict[str, str]:
        until = self._until or Until()
        if until.now:
            return {source: str(end) for source, end in self._ends.items() if end}
        if until.moment is not None:
            return dict.fromkeys(self._ends, f"{until.moment:%Y-%m-%d %H:%M:%S}Z")
        return {source: str(place) for source, place in until.places.items()}

"""Shards whose copy was deferred: when, while the sources are followed, to look at them again."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import anyio
import structlog

from actors.task.wiring.wiring import RunningTask
from replicator.mysql.names import TableName

log = structlog.get_logger()

LOOK_SECONDS = 0.5
"""Between two looks at the saved positions."""


@dataclass(slots=True)
class AppliedTargets:
    """What a run leaves to the next one: which targets had everything of a source up to a place.

    ``places`` (keys) by source and target; ``revision``: the number of the last save by then.
    """

    places: dict[str, dict[TableName, int]] = field(default_factory=dict)
    revision: int = -1

    def checked(self, revision: int) -> Mapping[str, Mapping[TableName, int]]:
        """The places, where the lease was taken with this number right behind the last save.

        Nothing otherwise: a target that has lost commits may have lost statements.
        """
        return self.places if revision == self.revision + 1 else {}


async def copy_due(
    running: RunningTask,
    look_at: Mapping[str, int],
    targets: Mapping[str, Set[TableName]],
    applied: AppliedTargets,
) -> None:
    """Wait until a source's saved position has come to the place by source; for ever without one.

    The saved one, since it stays before the items of locks that are open. Or until one of the
    ``targets`` by source has everything up to that place, which is noted in ``applied``: the
    saved position may stay where it is for the sake of another target.
    """
    while look_at:
        await anyio.sleep(LOOK_SECONDS)
        for source, place in look_at.items():
            position = running.writer.tracker(source).resume.position
            saved = position is not None and position.binlog.key >= place
            found = _applied(running, source, targets.get(source, frozenset()), place)
            if found:
                applied.places[source] = found
            if saved or found:
                log.info("copy.rechecked")
                return
    await anyio.sleep_forever()


def _applied(
    running: RunningTask, source: str, targets: Set[TableName], place: int
) -> dict[TableName, int]:
    """Those of the targets that have everything of a source up to a place, and how far."""
    unit = running.units.get(source)
    reached = running.writer.tracker(source).reached.position
    if unit is None or not unit.running or unit.restarting or reached is None:
        return {}
    if reached.binlog.key < place:
        return {}
    held, registry = unit.reader.held, running.registry
    open_targets = {registry.target_name(n) for n in running.coordination.open_targets(source)}
    return {
        target: reached.binlog.key
        for target in targets
        if not held.holds(target) and target not in open_targets
    }

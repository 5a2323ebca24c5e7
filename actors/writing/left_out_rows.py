"""What expression filters leave out: counted, and told of in the log now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from actors.counts import TaskCounts
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import LeftOut
from replicator.schema.registry.registry import SchemaRegistry

PACE = 60.0
"""Seconds between two records about the same shard and target."""


@dataclass(slots=True)
class _Told:
    """When a shard was last told of, and the rows since."""

    at: float
    rows: int = 0


class LeftOutRows:
    """Adds to the counts of the targets, and logs by shard: at the first row, then at a pace."""

    def __init__(
        self,
        registry: SchemaRegistry,
        counts: TaskCounts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._counts = counts
        self._clock = clock
        self._told: dict[tuple[Member, TableName], _Told] = {}
        self._log = structlog.get_logger()

    def note(self, batch: Iterable[LeftOut]) -> None:
        """Take down what a batch that is applied has left out."""
        now = self._clock()
        for found in batch:
            target = self._registry.target_name(found.target)
            counts = self._counts.targets[target]
            counts.filtered += found.rows
            told = self._told.setdefault((found.member, target), _Told(now - PACE))
            told.rows += found.rows
            if now - told.at >= PACE:
                self._log.info(
                    "rows.filtered",
                    source=found.member.source,
                    member=str(found.member.name),
                    target=str(target),
                    rows=told.rows,
                    rules=list(found.rules),
                )
                self._told[found.member, target] = _Told(now)

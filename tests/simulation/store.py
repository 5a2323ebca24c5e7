"""What survives a crash: the target with its watermarks, and the meta tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from replicator.sharding.items import Cutover, GroupState, MemberState, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution
from replicator.watermark import Place
from tests.simulation.estate import BEGINNING, Estate, Row

Watermark = tuple[int, Place]
"""(version, place), compared lexicographically."""


class BrokenError(Exception):
    """An invariant does not hold."""


class RefusedError(Exception):
    """The estate did what is not supported: the task stops with an error, and nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A row as a group gave it to the writer. ``lacking``: how many of the items that its member
    counts as having it may not have had yet."""

    row: Row
    at: Place
    version: int
    since: Place
    lacking: int = 0


@dataclass(frozen=True, slots=True)
class Saved:
    """The checkpoint of a source: a position, the groups' states there, and known watermarks."""

    key: int
    states: dict[str, GroupState[str]]
    low_watermarks: dict[str, Watermark]


@dataclass(slots=True)
class TargetTable:
    """One table of the target, with the watermarks and the DDL records that go with it."""

    executed: list[ResolvedItem] = field(default_factory=list)
    recorded: list[ResolvedItem] = field(default_factory=list)
    pending: Resolution[str, None] | None = None
    cutovers: dict[str, list[Cutover]] = field(default_factory=dict)
    rows: Counter[tuple[int, int]] = field(default_factory=Counter)
    last: dict[tuple[int, int], int] = field(default_factory=dict)
    watermarks: dict[tuple[str, int], Watermark] = field(default_factory=dict)

    def commit(
        self, source: str, bucket: int, rows: list[Forwarded], end: Watermark, *, orderly: bool
    ) -> None:
        """The rows of a bucket and their watermark, in one transaction."""
        for given in rows:
            if (given.version, given.at) > self.watermark(source, bucket):
                self.apply(bucket, given, orderly=orderly)
        self.watermarks[source, bucket] = max(end, self.watermark(source, bucket))

    def watermark(self, source: str, bucket: int) -> Watermark:
        return self.watermarks.get((source, bucket), (0, Place(-1, -1)))

    def apply(self, bucket: int, given: Forwarded, *, orderly: bool) -> None:
        row = given.row
        name = f"row {row.number} of {row.member} at {given.at}"
        key = (row.shard, row.number)
        if given.version != len(self.executed):
            raise BrokenError(
                f"{name} is of version {given.version}, the target of {len(self.executed)}"
            )
        if given.since != row.since:
            raise BrokenError(f"{name} is read as written since {given.since}, not {row.since}")
        texts = tuple(item.text for item in self.executed)
        if orderly and row.texts not in [texts[: len(texts) - n] for n in range(given.lacking + 1)]:
            raise BrokenError(f"{name} was written after {row.texts}: {self.executed}")
        if self.rows[key]:
            raise BrokenError(f"{name} is applied twice")
        if self.last.get((row.shard, bucket), 0) > row.number:
            raise BrokenError(f"{name} is applied after a later one")
        self.rows[key] += 1
        self.last[row.shard, bucket] = row.number

    def execute(self, resolution: Resolution[str, None]) -> None:
        """The item is executed, or passed over where the operator skipped it."""
        if resolution.version != len(self.executed) + 1:
            raise BrokenError(f"item {resolution.version} is executed after {self.executed}")
        self.executed.append(resolution.resolved)

    def finish(self) -> None:
        """The record says that the pending item is done."""
        self.recorded = list(self.executed)
        self.pending = None

    def recover(self) -> None:
        """After a crash the fingerprint tells whether the pending item took effect."""
        if len(self.executed) > len(self.recorded):
            self.finish()


@dataclass(slots=True)
class Store:
    """Everything in the target server."""

    tables: dict[str, TargetTable]
    saved: dict[str, Saved]


def new_store(estate: Estate) -> Store:
    """What there is before a process has run: every member at version 0, nothing read."""
    return Store(
        {target: TargetTable() for target in estate.targets},
        {
            source: Saved(
                0,
                {
                    target: GroupState(
                        0,
                        tuple(
                            (name, MemberState(0, BEGINNING))
                            for name in sorted(estate.initial[source, target])
                        ),
                    )
                    for target in estate.targets
                },
                {},
            )
            for source in estate.binlogs
        },
    )

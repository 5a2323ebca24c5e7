"""What a comparison has found."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicator.mysql.names import TableName


@dataclass(frozen=True, slots=True)
class ColumnLeftOut:
    """A column that is not compared, and why. ``harmless``: no row of a shard has a value of it."""

    column: str
    why: str
    harmless: bool = False


@dataclass(slots=True)
class TargetComparison:
    """What was found of one target.

    ``rows`` of the target, ``by_shard`` those of each shard. ``missing``, ``extra`` and
    ``different`` are rows that stayed so. ``held``: rows that differ and whose source waits in a
    DDL lock; ``unsettled``: rows that differ and whose source the task has not caught up with.
    ``structure``: how the target's columns and indexes differ from those of its shards.
    ``left_out``: columns that are not compared; ``failure``: why the target can't be compared.
    """

    target: TableName
    rows: int = 0
    by_shard: dict[str, int] = field(default_factory=dict)
    ranges: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    held: int = 0
    unsettled: int = 0
    seconds: float = 0.0
    left_out: tuple[ColumnLeftOut, ...] = ()
    failure: str = ""
    structure: list[str] = field(default_factory=list)
    examples: list[tuple[str, str, str, str]] = field(default_factory=list)

    @property
    def differing(self) -> int:
        """Rows that differ, whatever the way."""
        return self.missing + self.extra + self.different

    @property
    def unequal(self) -> bool:
        """Whether rows or structures differ."""
        return bool(self.differing or self.structure)

    @property
    def incomplete(self) -> bool:
        """Whether a part of it could not be compared."""
        lacking = any(not out.harmless for out in self.left_out) and not self.held
        return bool(self.failure) or bool(self.unsettled) or lacking

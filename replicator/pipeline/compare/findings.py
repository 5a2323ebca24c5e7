"""What a comparison has found."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicator.mysql.names import TableName


@dataclass(frozen=True, slots=True)
class ColumnLeftOut:
    """A column that is not compared, and why. ``harmless``: no row of a shard has a value of it, or
    a schema change waits that may explain it. ``absent``: the target lacks it, or all shards do."""

    column: str
    why: str
    harmless: bool = False
    absent: bool = False


@dataclass(frozen=True, slots=True)
class ColumnExample:
    """A column that differs, as its values are shown."""

    column: str
    in_shard: str
    on_target: str

    def __str__(self) -> str:
        return f"{self.column}: {self.in_shard} in the shard, {self.on_target} on the target"


@dataclass(frozen=True, slots=True)
class RowExample:
    """A row that differs, for people; ``shard`` is empty where only the target has it."""

    kind: str
    shard: str
    key: str
    columns: tuple[ColumnExample, ...] = ()


@dataclass(slots=True)
class ComparedRange:
    """A range: ``rows`` of the target, and those that differ, that wait behind a lock, or that the
    task has not caught up with."""

    rows: int
    differing: int = 0
    held: int = 0
    unsettled: int = 0


@dataclass(slots=True)
class TargetComparison:
    """What was found of one target.

    ``rows`` of the target, ``by_shard`` those of each shard. ``missing``, ``extra`` and
    ``different`` are rows that stayed so. ``held``: rows that differ and whose source waits in a
    DDL lock; ``held_events``: how many row events its locks hold, None if the task that knows it
    does not run on this host; ``unsettled``: rows that differ and whose source the task has not
    caught up with.
    ``structure``: how the target's columns and indexes differ from those of its shards, so that it
    does not store all of their rows; ``notes``: other differences of structure.
    ``left_out``: columns that are not compared; ``failure``: why the target can't be compared.
    ``repaired``: rows that were made right, of those that differ; ``untouched``: those that no
    repair may change; ``refused``: a repair failed, and ``failure`` is the server's error;
    ``shared``: keys of which several rows are in shards.
    ``retired``: rows of the target
    that are, or may be, those of shards that do not exist any more; ``unowned``: rows that only the
    target has, and that may be those of a shard that the account can't see, or that is gone and of
    which nothing is saved. ``remarks``: sentences
    about these, and about rows that were not made right. ``blocked``: what else than a schema
    change keeps the task from applying rows, as a sentence; empty if nothing does.
    """

    target: TableName
    rows: int = 0
    by_shard: dict[str, int] = field(default_factory=dict)
    ranges: list[ComparedRange] = field(default_factory=list)
    missing: int = 0
    extra: int = 0
    different: int = 0
    held: int = 0
    held_events: int | None = None
    unsettled: int = 0
    repaired: int = 0
    untouched: int = 0
    refused: bool = False
    shared: int = 0
    blocked: str = ""
    retired: int = 0
    unowned: int = 0
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    left_out: tuple[ColumnLeftOut, ...] = ()
    failure: str = ""
    structure: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    examples: list[RowExample] = field(default_factory=list)

    @property
    def differing(self) -> int:
        """Rows that differ, whatever the way."""
        return self.missing + self.extra + self.different

    @property
    def unequal(self) -> bool:
        """Whether rows or structures differ, or rows wait for more than a schema change."""
        return bool(self.differing or self.structure or self.blocked)

    @property
    def unexplained(self) -> bool:
        """Whether rows count as held, although the locks hold no row event."""
        return bool(self.held) and self.held_events == 0 and not self.blocked

    @property
    def incomplete(self) -> bool:
        """Whether a part of it could not be compared."""
        lacking = any(not out.harmless for out in self.left_out)
        return bool(self.failure or self.unsettled or self.unowned) or lacking

    @property
    def rows_per_second(self) -> float:
        """Rows of the target that were compared in a second."""
        return self.rows / self.seconds if self.seconds else 0.0

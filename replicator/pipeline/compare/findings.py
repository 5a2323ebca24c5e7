"""The findings of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from replicator.mysql.names import TableName
from replicator.mysql.row_values import HIDDEN


@dataclass(frozen=True, slots=True)
class ColumnLeftOut:
    """A column that is not compared.

    Attributes:
        why: the reason.
        harmless: whether no row of a shard has a value in it, or a waiting schema change may be the
            reason.
        absent: whether the target or all shards lack the column.
    """

    column: str
    why: str
    harmless: bool = False
    absent: bool = False


@dataclass(frozen=True, slots=True)
class ColumnExample:
    """A differing column, with the displayed values."""

    column: str
    in_shard: str
    on_target: str

    def __str__(self) -> str:
        return f"{self.column}: {self.in_shard} in the shard, {self.on_target} on the target"


@dataclass(frozen=True, slots=True)
class RowExample:
    """A differing row, for people; ``shard`` is empty if only the target has it."""

    kind: str
    shard: str
    key: str
    columns: tuple[ColumnExample, ...] = ()

    @property
    def is_hidden(self) -> bool:
        """Whether the values are hidden."""
        return self.key == HIDDEN

    def without_values(self) -> RowExample:
        """Return the example with hidden values."""
        columns = (replace(column, in_shard=HIDDEN, on_target=HIDDEN) for column in self.columns)
        return replace(self, key=HIDDEN, columns=tuple(columns))


@dataclass(slots=True)
class ComparedRange:
    """A range of a target's rows.

    Attributes:
        rows: rows of the target.
        differing: rows that differ.
        held: differing rows that wait for a lock.
        unsettled: differing rows whose source the task has not caught up with.
    """

    rows: int
    differing: int = 0
    held: int = 0
    unsettled: int = 0


@dataclass(slots=True)
class TargetComparison:
    """The findings about one target.

    Attributes:
        rows: number of rows of the target.
        by_shard: number of rows of each shard.
        checksum: the sum of the rows' checksums on the target; None if servers did not compute all.
        missing: number of shards' rows that the target still lacked at the last read.
        extra: number of rows that only the target still had at the last read.
        different: number of rows with other values at the last read.
        held: number of differing rows whose source waits for a DDL lock.
        held_events: row events that the source's locks hold; None if the task does not run on this
            host, since only the task knows this.
        unsettled: number of differing rows whose source is ahead of the task, or that change at
            every read.
        unsettled_reason: why rows are unsettled, and what helps.
        repaired: number of differing rows that were corrected.
        untouched: number of differing rows that no repair may change.
        refused: whether a repair failed; ``failure`` is the server's error.
        duplicate_keys: number of keys that several rows of shards have.
        blocked: a sentence with the reason why the task does not apply rows, other than schema
            changes; empty if there is none.
        retired: number of rows of the target that belong, or may belong, to shards that no longer
            exist.
        unowned: number of rows that only the target has, and that may belong to a shard that the
            account can't see, or to a former shard that was never saved.
        remarks: sentences about retired and unowned rows, and about rows that were not corrected.
        left_out: columns that are not compared.
        failure: why the target can't be compared.
        structure: differences of columns and indexes because of which the target can't store all
            rows of its shards.
        notes: other differences of structure.
    """

    target: TableName
    rows: int = 0
    by_shard: dict[str, int] = field(default_factory=dict)
    checksum: int | None = 0
    ranges: list[ComparedRange] = field(default_factory=list)
    missing: int = 0
    extra: int = 0
    different: int = 0
    held: int = 0
    held_events: int | None = None
    unsettled: int = 0
    unsettled_reason: str = ""
    repaired: int = 0
    untouched: int = 0
    refused: bool = False
    duplicate_keys: int = 0
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
        """The number of rows that differ in any way."""
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
    def unsettled_remark(self) -> str:
        """A sentence about the unsettled rows; empty if there are none."""
        if not self.unsettled:
            return ""
        return f"{self.unsettled:,} rows are not decided: they differ, but {self.unsettled_reason}"

    @property
    def incomplete(self) -> bool:
        """Whether a part of the target could not be compared."""
        lacking = any(not out.harmless for out in self.left_out)
        return bool(self.failure or self.unsettled or self.unowned) or lacking

    @property
    def rows_per_second(self) -> float:
        """Rows of the target compared per second."""
        return self.rows / self.seconds if self.seconds else 0.0

"""The status of a task as data: the answer to `replicator status`.

The JSON form (`TaskStatus.to_dict`) is a stable interface: fields are added, never renamed or
removed. Times are UTC in ISO 8601, positions are ``file:offset``, and rates are rows per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from replicator.relay_status import RelayStatus
from replicator.status_json import ShapeError, plain, shaped

TaskState = Literal[
    "starting", "standby", "running", "pausing", "paused", "stopping", "stopped", "killed"
]
"""The state of a task.

``standby``: another process runs the task, and this process waits to take over. ``killed``: the
process has ended without stopping the task. ``paused``: the operator or a fault of the whole task
has stopped it. With a fault of one part, only this part is blocked, and the task is ``running``.
"""

PartKind = Literal["target", "source"]
"""The kinds of parts that can be blocked while the rest of the task continues."""

LockState = Literal["waiting", "conflict", "resolving"]
"""``waiting`` for shards; ``conflict``: waiting for the operator; ``resolving``: being executed."""

ReconcilingState = Literal["queued", "comparing", "waiting", "failed"]
"""``waiting``: continues without the operator; ``failed``: needs the operator, and is retried."""

CopyState = Literal["copying", "finished", "deferred"]
"""``finished``: all rows are on the target. ``deferred``: some shards will be copied again.

Deferred shards are copied again when their targets have their statements; all other rows are on the
target.
"""


class StatusFormatError(Exception):
    """A status that this version can't read."""


def now() -> datetime:
    """Return the present time for a ``since`` field: UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that blocks a task or a part of it.

    Attributes:
        event: the name of its log event.
        where: the source, target and position, as far as known.
        remedies: sentences or commands; the first one should be tried first.
    """

    event: str
    message: str
    where: str
    remedies: tuple[str, ...]
    since: datetime


@dataclass(frozen=True, slots=True)
class BinlogDistance:
    """The distance of a position from both ends of its source's binlog.

    Attributes:
        files_behind: number of newer binlog files.
        bytes_behind: number of bytes up to the end.
        files_left: number of older files that the source still has; at 0, the file of the position
            is purged next.
    """

    files_behind: int
    bytes_behind: int
    files_left: int


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source.

    Attributes:
        position, gtid: the end of what the task has read.
        applied_position: a transaction boundary; the rows before it are applied, except held rows.
        saved_position: the last saved ``applied_position``, at which a restart begins.
        lag_seconds: the age of the oldest row that was read and is not on the target; without such
            a row, of the newest event read. 0 if everything is read, None before the first event;
            never longer than the time since everything was read.
        distance: the distance of the position at which a restart begins; None if unknown.
        prepared: the positions of XA transactions that are not yet committed or rolled back.
        rows, bytes: read since the process started.
        transactions: number of transactions with applied rows since the process started.
        relay: the relay log; None without one.
        complete_position: a transaction boundary; all rows before it are applied, none is held.
        complete_gtid, complete_until: this boundary as a GTID set, and as a time of the source's
            clock.
    """

    source: str
    state: str
    position: str = ""
    gtid: str = ""
    applied_position: str = ""
    saved_position: str = ""
    lag_seconds: float | None = None
    rows: int = 0
    bytes: int = 0
    reconnects: int = 0
    distance: BinlogDistance | None = None
    prepared: tuple[str, ...] = ()
    transactions: int = 0
    complete_position: str = ""
    complete_gtid: str = ""
    complete_until: datetime | None = None
    relay: RelayStatus | None = None


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """One downstream table, named ``schema.table``; the counts start with the process.

    Attributes:
        members: number of its shards, of all sources.
        version: number of items executed on it.
        overwritten: number of rows replaced by a newer state.
        missing: number of rows that an UPDATE or DELETE did not find.
        ddl: a schema change that is being executed or waits for shards; empty if there is none.
        filtered: number of row changes that expression filters skipped.
        bytes, transactions: size and transactions of the applied row events.
    """

    target: str
    members: int = 0
    version: int = 0
    inserted: int = 0
    overwritten: int = 0
    deleted: int = 0
    missing: int = 0
    rows_per_second: float = 0.0
    ddl: str = ""
    filtered: int = 0
    bytes: int = 0
    transactions: int = 0


@dataclass(frozen=True, slots=True)
class LockSource:
    """One source of a lock.

    Attributes:
        missing: shards that have not executed the statement.
        saved_position: the position from which the source would be read again; ``distance`` is its
            distance from the ends of the binlog.
    """

    source: str
    ready: bool
    missing: tuple[str, ...] = ()
    saved_position: str = ""
    distance: BinlogDistance | None = None


@dataclass(frozen=True, slots=True)
class LockClaim:
    """The statements of one shard, starting with the disputed one."""

    source: str
    member: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockConflict:
    """Two shards have different statements as the item ``version`` of the target."""

    version: int
    ours: LockClaim
    theirs: LockClaim


@dataclass(frozen=True, slots=True)
class LockStatus:
    """A schema change that waits for shards, or is being resolved.

    Attributes:
        id: the argument of `replicator unlock-ddl-lock`.
        version: the number of its item on the target.
        ddl: the statement as the target would execute it.
        owner: the first source whose shards all have it; empty if there is none.
        since: the time of its first statement, by the source's clock; None if unknown.
        rows_held: number of row events that are read again when it is resolved.
        reason: why it is open, if it does not only wait for shards.
        shard: the shard whose statement it is, if only the rows of this shard wait.
        holds: whether rows may wait for it.
        refused: whether the target has refused the statement.
        others: other targets whose rows wait for it, such as the new targets of renamed shards.
    """

    id: str
    target: str
    version: int
    ddl: str
    owner: str
    state: LockState
    since: datetime | None
    rows_held: int = 0
    sources: tuple[LockSource, ...] = ()
    conflict: LockConflict | None = None
    remedies: tuple[str, ...] = ()
    reason: str = ""
    shard: str = ""
    holds: bool = True
    refused: bool = False
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldTarget:
    """A target whose rows may wait: rows of all its shards, or of ``shards`` (source: table).

    ``reason`` is what holds the rows besides a schema change. ``events`` is the number of held row
    events; None if unknown.
    """

    target: str
    all_of: bool
    shards: tuple[str, ...]
    reason: str
    events: int | None


@dataclass(frozen=True, slots=True)
class DifferingShard:
    """A shard that differs from its target; ``differences`` has a sentence for each difference."""

    source: str
    member: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferingTarget:
    """A target whose shards differ (`shard-mode: optimistic`), without holding any rows.

    ``notices`` are differences between shards that do not affect rows.
    """

    target: str
    shards: tuple[DifferingShard, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def by_difference(self) -> Mapping[str, Sequence[str]]:
        """The shards with their sources, by difference."""
        found: dict[str, list[str]] = {}
        for shard in self.shards:
            for text in shard.differences:
                found.setdefault(text, []).append(f"{shard.source}: {shard.member}")
        return found


@dataclass(frozen=True, slots=True)
class HeldAtSource:
    """Row events of a blocked target that a source will read again, from ``saved_position`` on."""

    source: str
    rows_held: int
    saved_position: str = ""
    distance: BinlogDistance | None = None


@dataclass(frozen=True, slots=True)
class BlockedPart:
    """A target or a source that is stopped while the rest of the task runs.

    Attributes:
        error: its fault; None if the operator has paused it, or it waits for another target.
        waits_for: another target that a statement has tied it to.
    """

    kind: PartKind
    name: str
    since: datetime
    error: Fault | None = None
    waits_for: str = ""
    held: tuple[HeldAtSource, ...] = ()
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """The writer of the task; the counts start with the process.

    ``state`` is ``idle``, ``applying``, or ``retrying: …`` with the cause. ``queued_bytes`` is the
    size of the row events that are read and not yet applied.
    """

    state: str = "idle"
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    last_batch_seconds: float | None = None
    queued_bytes: int = 0
    checkpoint_age_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CopyStatus:
    """The full copy of all sources. The rows of a failed attempt at a chunk are subtracted.

    Attributes:
        tables, tables_done: number of shards, and of shards that are completely on the target.
        rows, bytes, chunks: copied so far, in this and former processes; bytes are those of the
            rows as text. Rows and bytes include the parts that unfinished chunks have sent, unless
            Spark tasks run on a cluster.
        rows_expected, bytes_expected: estimates from the servers and the copied part; 0 if unknown.
        seconds_left: estimate from the smoothed recent rate; None if unknown.
        replaced, ignored: number of rows whose key was on the target already.
        waiting: the reason why the copy waits; empty if it does not.
        held: the targets that wait for the copy while other targets are followed; empty if all
            wait.
        percent: progress in rows and bytes expected; None if unknown.
    """

    state: CopyState
    tables: int = 0
    tables_done: int = 0
    rows: int = 0
    rows_expected: int = 0
    bytes: int = 0
    chunks: int = 0
    rows_per_second: float = 0.0
    seconds_left: float | None = None
    replaced: int = 0
    ignored: int = 0
    waiting: str = ""
    held: tuple[str, ...] = ()
    percent: float | None = None
    bytes_expected: int = 0


@dataclass(frozen=True, slots=True)
class Trend:
    """The last minutes: a value for every ``interval_seconds``, the newest one last.

    ``lag_seconds`` has the largest lag of all sources; None if unknown.
    """

    interval_seconds: float = 0.0
    rows_per_second: tuple[float, ...] = ()
    lag_seconds: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationStatus:
    """The validation of applied rows; its counts start with the process.

    Attributes:
        checked, skipped: number of keys that were validated, and of keys that were skipped.
        waiting: number of keys that wait for validation; the oldest waits for ``seconds_behind``.
        suspects: number of rows that differ and will be read again.
        errors, ignored, resolved, corrected: number of rows that stayed different, by the state of
            the error.
        left_out: the targets that can't be validated, each with the reason.
    """

    checked: int = 0
    waiting: int = 0
    seconds_behind: float = 0.0
    suspects: int = 0
    skipped: int = 0
    errors: int = 0
    ignored: int = 0
    resolved: int = 0
    corrected: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableShard:
    """A shard that the task follows, but that its account can't read.

    Attributes:
        remedy: the statement that grants the privilege; empty if no privilege is missing.
        targets: the targets that may lack rows that moved into this shard, until it can be read.
    """

    source: str
    shard: str
    reason: str
    remedy: str = ""
    targets: tuple[str, ...] = ()

    def __str__(self) -> str:
        missing = (
            f" Before it can be read, rows that moved there may be missing in"
            f" {', '.join(self.targets)}."
            if self.targets
            else ""
        )
        remedy = f" Execute there: {self.remedy}" if self.remedy else ""
        return f"{self.source}: {self.shard} can't be read ({self.reason}).{missing}{remedy}"


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """A shard that the task follows, or a retired shard.

    Attributes:
        version: the version of the target at which the shard's rows are applied at present.
        rows: number of row events read since the process started.
        last_change: the time of the last of these, by the source's clock.
        lacks: statements of open locks that it has not executed; with `shard-mode: optimistic`,
            also its differences from the target.
        unreadable: why the account of the task can't read it; empty if it can.
        retired: when the task stopped following it; None if the task follows it.
    """

    source: str
    table: str
    target: str
    version: int = 0
    rows: int = 0
    last_change: datetime | None = None
    lacks: tuple[str, ...] = ()
    unreadable: str = ""
    retired: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reconciling:
    """A target whose rows are compared with its shards and corrected.

    Attributes:
        since: when the reconciliation was first requested.
        columns: the columns whose values only the shards know; empty if there is another reason.
        where: the condition for the rows, as SQL; empty for all rows.
        rows: number of the target's rows that the current pass has compared.
        percent: this number, as a part of the target's approximate number of rows; None if unknown.
        reason: why it waits or has failed.
    """

    target: str
    state: ReconcilingState
    since: datetime
    columns: tuple[str, ...] = ()
    where: str = ""
    rows: int = 0
    percent: float | None = None
    corrected: int = 0
    reason: str = ""

    def __str__(self) -> str:
        rows = f" where {self.where}" if self.where else ""
        done = f"{self.percent:.0f} %" if self.percent is not None else self.state
        text = f"reconciling {self.target}{rows}: {done}, {self.corrected:,} rows corrected"
        if self.reason:
            text += f"; {self.state}: {self.reason}"
        if not self.columns:
            return text
        names = ", ".join(self.columns)
        return f"{text}; until it ends, readers see the target's own values in {names}"


@dataclass(frozen=True, slots=True)
class VerifiedTarget:
    """The last comparison of all rows of a target with its shards.

    Attributes:
        at: when it ended; None if none has ended.
        rows, differing: number of the target's rows that it compared, and of rows that differed at
            its end.
        percent: progress of the present comparison; None without one.
        reason: why the present comparison pauses or failed; empty if it did not.
    """

    target: str
    at: datetime | None = None
    rows: int = 0
    differing: int = 0
    percent: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        text = f"{self.target}: "
        if self.at is None:
            text += "not verified yet"
        else:
            text += f"verified at {self.at:%Y-%m-%d %H:%M:%S}Z, {self.rows:,} rows"
        if self.differing:
            text += f", {self.differing:,} rows differ"
        if self.percent is not None:
            text += f"; verifying, {self.percent:.0f} %"
        return f"{text}; {self.reason}" if self.reason else text


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task.

    If ``pid`` is 0, the status does not come from a process: it has the values that the task saved,
    last at ``since``. In a list of tasks it then has only ``since``: the time when the task ended,
    or the start of a killed task.

    Attributes:
        since: when the task entered its state.
        standby_for: the process that runs the task while this process waits; empty otherwise.
        started: when the process started; None without a process.
        reason: why the task pauses; empty if it does not.
        rows_corrected: number of rows that reconciliations corrected since the process started.
    """

    task: str
    state: TaskState
    since: datetime
    pid: int
    error: Fault | None = None
    sources: tuple[SourceStatus, ...] = ()
    targets: tuple[TargetStatus, ...] = ()
    writer: WriterStatus = WriterStatus()
    locks: tuple[LockStatus, ...] = ()
    copy: CopyStatus | None = None
    blocked: tuple[BlockedPart, ...] = ()
    validation: ValidationStatus | None = None
    trend: Trend = Trend()
    differing: tuple[DifferingTarget, ...] = ()
    standby_for: str = ""
    reason: str = ""
    unreadable: tuple[UnreadableShard, ...] = ()
    retired: tuple[ShardStatus, ...] = ()
    reconciling: tuple[Reconciling, ...] = ()
    rows_corrected: int = 0
    verified: tuple[VerifiedTarget, ...] = ()
    started: datetime | None = None
    held: tuple[HeldTarget, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        values: dict[str, Any] = plain(self)
        return values

    @staticmethod
    def from_dict(values: dict[str, Any]) -> TaskStatus:
        """Return the status from the values of `to_dict`; unknown fields are ignored.

        Raises StatusFormatError if a field is missing or has another type.
        """
        try:
            return shaped(TaskStatus, values)
        except ShapeError as error:
            raise StatusFormatError(
                f"the status of the task is not understood: {error}. Use the same version of"
                " replicator for the task and for this command"
            ) from error


def condition(status: TaskStatus) -> str:
    """Return ``running``, ``retrying``, ``blocked (2 parts)``, ``waiting for a lock`` …"""
    if status.state != "running":
        return status.state
    if status.blocked:
        parts = len(status.blocked)
        return f"blocked ({parts} {'part' if parts == 1 else 'parts'})"
    if any(lock.state == "conflict" for lock in status.locks):
        return "lock in conflict"
    if is_retrying(status):
        return "retrying"
    return "waiting for a lock" if status.locks else "running"


def is_retrying(status: TaskStatus) -> bool:
    """Return whether the task retries, because a server or Spark does not answer or progress."""
    copy = status.copy
    return (
        status.writer.state.startswith("retrying")
        or any(source.state.startswith("reconnecting") for source in status.sources)
        or (copy is not None and copy.state == "copying" and bool(copy.waiting))
    )


def largest_lag(status: TaskStatus) -> float | None:
    """Return the largest lag of all sources; None if one is unknown, or there is no source."""
    lags = [source.lag_seconds for source in status.sources if source.lag_seconds is not None]
    return max(lags) if lags and len(lags) == len(status.sources) else None


def faults_of(status: TaskStatus) -> list[tuple[str, Fault]]:
    """Return each fault of the task and its parts once, with the name of the blocked part."""
    parts = [(f"{part.kind} {part.name}", part.error) for part in status.blocked]
    found = [(what, fault) for what, fault in parts if fault is not None]
    if status.error is not None and status.error not in [fault for _, fault in found]:
        found.insert(0, (f"task {status.task}", status.error))
    return found


def needs_operator(status: TaskStatus) -> bool:
    """Return whether the task or a part of it waits for the operator.

    A lock that waits for shards, an unavailable server, and a target that waits for its copy do not
    need the operator. A stopped task does not either, because the operator stopped it.
    """
    return (
        status.state in ("killed", "paused", "pausing")
        or any(part.error is not None or not part.waits_for for part in status.blocked)
        or any(lock.state == "conflict" for lock in status.locks)
        or any(entry.state == "failed" for entry in status.reconciling)
    )

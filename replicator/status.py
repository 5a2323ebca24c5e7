"""What a running task tells about itself: the answer to `replicator status`, as data.

The JSON form (`TaskStatus.to_dict`) is a stable interface: fields are added, never renamed or
removed. Times are UTC in ISO 8601, positions ``file:offset``, rates rows per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from replicator.status_values import ShapeError, plain, shaped

TaskState = Literal[
    "starting", "standby", "running", "pausing", "paused", "stopping", "stopped", "killed"
]
"""The life of a task; ``standby``: another process runs it, and this one waits to take over.
``killed``: its process is gone without having ended in order. One with an
error that needs the operator is ``paused``; where the error
concerns a part of it, that is blocked, and the task is ``running`` with the rest."""

PartKind = Literal["target", "source"]
"""What can be blocked while the rest of a task goes on."""

LockState = Literal["waiting", "conflict", "resolving"]
"""``waiting`` for shards; ``conflict``: for the operator; ``resolving``: it is being executed."""


ReconcilingState = Literal["queued", "comparing", "waiting", "failed"]
"""``waiting`` for something that needs nobody; ``failed``: it is tried again, and needs the
operator."""

CopyState = Literal["copying", "finished", "deferred"]
"""``finished``: all rows are on the target, and what has changed since is taken from the binlog.
``deferred``: so it is but for some shards, which are copied once more when their targets have
their statements."""


class StatusFormatError(Exception):
    """A status that this version does not understand."""


def now() -> datetime:
    """The time to put into a ``since``: UTC, whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that blocks a task, and the operator's remedies of it.

    ``event`` is the name under which it was logged; ``where`` names source, target and position
    as far as known; ``remedies`` are sentences or commands, the one to try first in front.
    """

    event: str
    message: str
    where: str
    remedies: tuple[str, ...]
    since: datetime


@dataclass(frozen=True, slots=True)
class BinlogDistance:
    """How far a position is from both ends of its source's binlog.

    ``files_behind``: binlog files begun after its own; ``bytes_behind``: up to the end.
    ``files_left``: older files that the source still has; with 0, its own is the next one to be
    purged.
    """

    files_behind: int
    bytes_behind: int
    files_left: int


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source.

    ``position`` and ``gtid``: read up to here; ``applied_position``: a transaction boundary up to
    which everything is applied; ``saved_position``: one that is saved too, where a restart begins.
    ``lag_seconds``: the age of the oldest row read that is not on the target, be it queued, held or
    of a blocked part; else of the newest event read, 0 when all is read, None before the first
    one; of a source that is not read for now, not more than the time since all of it was.
    ``rows`` and ``bytes``: read since the process started. ``distance``: of the position that a
    restart begins at; None while it is not known. ``prepared``: where the XA transactions stand
    that are prepared, and neither committed nor rolled back as far as was read. ``transactions``:
    of which rows were applied. ``complete_position``: a transaction boundary before which the
    target has all rows, also those that locks and blocked targets hold; ``complete_gtid``: the
    GTID set executed up to there; ``complete_until``: the same by the clock of the source.
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


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """One downstream table, named ``schema.table``; the counts are since the process started.

    ``members``: its shard tables, of all sources; ``version``: DDL items executed on it.
    ``overwritten``: rows replaced by a newer state; ``missing``: rows that an UPDATE or DELETE
    did not find. ``ddl``: a schema change under way or waiting for shards, empty if there is none.
    ``filtered``: changes of rows that expression filters left out. ``bytes``: of the row events
    that were applied, ``transactions``: theirs.
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
    """One source of a lock: ``missing`` names its shards that have not brought the statement.

    ``saved_position`` is where the source would be read again from, ``distance`` how far that is
    from both ends of its binlog.
    """

    source: str
    ready: bool
    missing: tuple[str, ...] = ()
    saved_position: str = ""
    distance: BinlogDistance | None = None


@dataclass(frozen=True, slots=True)
class LockClaim:
    """What one shard brought, from the disputed statement on."""

    source: str
    member: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockConflict:
    """Two shards brought different statements as the item ``version`` of the target."""

    version: int
    ours: LockClaim
    theirs: LockClaim


@dataclass(frozen=True, slots=True)
class LockStatus:
    """A schema change that waits for shards, or is being resolved.

    ``id`` is what `replicator unlock-ddl-lock` takes. ``ddl`` is as it would be executed on
    ``target``, as its item number ``version``. ``owner``: the first source of which all shards
    have it, empty while there is none. ``since``: the earliest of these statements, by its
    source's clock; None where that is not known. ``rows_held``: row events that are read again
    when it is resolved. ``reason``: why it is open, where that is not only that shards lack it;
    ``shard``: then, the one whose statement it is, and whose rows alone wait. ``holds``: whether
    rows may wait for it. ``refused``: the target has refused the statement. ``others``: more
    targets of which rows wait for it, as those that renamed shards come to.
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
    """A target whose rows may wait: those of all its shards, or of ``shards`` (source: table).

    ``reason``: what else than a schema change holds them; ``events``: how many row events are
    held, None if that is not known.
    """

    target: str
    all_of: bool
    shards: tuple[str, ...]
    reason: str
    events: int | None


@dataclass(frozen=True, slots=True)
class DifferingShard:
    """A shard of a source that is not as its target: ``differences``, each as a sentence."""

    source: str
    member: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferingTarget:
    """A target whose shards differ (`shard-mode: optimistic`); nothing waits for that.

    ``notices``: in what shards disagree though no row can tell.
    """

    target: str
    shards: tuple[DifferingShard, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def by_difference(self) -> Mapping[str, Sequence[str]]:
        """The shards with their sources, by what they have otherwise."""
        found: dict[str, list[str]] = {}
        for shard in self.shards:
            for text in shard.differences:
                found.setdefault(text, []).append(f"{shard.source}: {shard.member}")
        return found


@dataclass(frozen=True, slots=True)
class HeldAtSource:
    """What one source holds of a blocked target: ``rows_held`` row events, read again later.

    ``saved_position`` is where they would be read again from, ``distance`` how far that is from
    both ends of the source's binlog.
    """

    source: str
    rows_held: int
    saved_position: str = ""
    distance: BinlogDistance | None = None


@dataclass(frozen=True, slots=True)
class BlockedPart:
    """A target or a source that does not go on while the rest of the task does.

    ``name``: that of the target as in `TargetStatus`, or of the source. ``error``: the fault that
    blocks it; None where the operator has paused it, or where it waits for another target,
    ``waits_for``, which a statement has tied it to. ``held``: by source, of a target.
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
    """The writer of the task: batches and rows since the process started.

    ``state`` is ``idle``, ``applying`` or what it waits for (``retrying: …``). ``queued_bytes``:
    row events collected and not yet applied.
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
    """The full copy, of all sources together.

    ``tables`` are shards, ``tables_done`` those of which every row is on the target.
    ``rows_expected`` and ``bytes_expected`` are estimates, by what the servers say and what is
    copied by then, 0 where there are none. ``rows``, ``bytes``
    (of the rows as text) and ``chunks`` count also what former starts have copied, the rest this
    process. ``rows`` and ``bytes`` include what was sent of chunks under way, unless tasks run on
    a cluster; an attempt at a chunk that fails takes its rows out of them again. ``percent``: of
    the rows and bytes expected, None where these are not known. ``seconds_left``: at the rate of
    late, smoothed, None while it is not known. ``replaced`` and ``ignored``: rows whose key was on
    the target already. ``waiting``: what the copy waits for, empty if for nothing. ``held``: the
    targets that wait for it while all others are followed; empty where it is what all wait for.
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

    ``lag_seconds``: the largest of all sources; None where it was not known.
    """

    interval_seconds: float = 0.0
    rows_per_second: tuple[float, ...] = ()
    lag_seconds: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationStatus:
    """The validation of rows that were applied.

    ``checked``: keys that were looked at since the process started; ``waiting``: keys that wait for
    their first look, the oldest for ``seconds_behind``; ``suspects``: rows that differ and are
    looked at again. ``skipped``: keys that were left out. ``errors``: rows that stayed different;
    ``ignored`` and ``resolved``: those of which the operator has said so. ``left_out``: targets
    that can't be validated, each with the reason.
    """

    checked: int = 0
    waiting: int = 0
    seconds_behind: float = 0.0
    suspects: int = 0
    skipped: int = 0
    errors: int = 0
    ignored: int = 0
    resolved: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableShard:
    """A shard that the task follows, and that its account can't read.

    Attributes:
        source: the source.
        shard: the schema and table.
        reason: the server's error.
        remedy: the statement that gives the privilege; empty if none is missing.
        targets: the targets that may lack rows that moved into this shard, before it can be read.
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
    """A shard that the task follows.

    Attributes:
        source: its source.
        table: its schema and table.
        target: the target of its rows, as in `TargetStatus`.
        version: the version of the target that its rows are applied at now.
        rows: row events read since the process started.
        last_change: when the last of these was written, by the clock of the source.
        lacks: the statements of open locks that it has not made, and with `shard-mode: optimistic`
            also in what it differs from the target.
        unreadable: why the account of the task can't read it; empty if it can.
    """

    source: str
    table: str
    target: str
    version: int = 0
    rows: int = 0
    last_change: datetime | None = None
    lacks: tuple[str, ...] = ()
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Reconciling:
    """A target whose rows are compared with those of its shards and corrected.

    Attributes:
        target: its name, as in `TargetStatus`.
        state: what is done with it.
        since: when it was first asked for.
        columns: the columns whose values only the shards know; empty if rows are compared for
            another reason.
        where: the condition of the rows, as SQL; empty for all.
        rows: rows of the target that the current pass has compared.
        percent: of the rows that the target has about; None while that is not known.
        corrected: rows corrected so far.
        reason: what it waits for, or why it failed.
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
    """When all rows of a target were last compared with those of its shards.

    Attributes:
        target: its name, as in `TargetStatus`.
        at: when the last comparison ended; None if none has ended.
        rows: rows of the target that it compared.
        differing: rows that differed, and were left as they were.
        percent: how far the comparison is that is being made; None if none is.
        reason: why it pauses or could not be made; else empty.
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
    """One task, in the process ``pid``; ``since``: when it entered ``state``.

    ``standby_for``: the process that runs the task where this one stands by, else empty.
    ``started``: when the process began; None if none runs.
    ``reason``: why the task pauses, else empty. ``reconciling``: the targets whose rows are
    compared and corrected; ``rows_corrected``: by that, since the process started. ``verified``:
    when all rows of the targets were last compared, if rolling verification is on.

    With ``pid`` 0 no process was asked: it is what a task that does not run has saved, last at
    ``since``, or in a list of tasks only that it has ended at ``since``. There, one that was
    ``killed`` has begun at ``since``.
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
    reconciling: tuple[Reconciling, ...] = ()
    rows_corrected: int = 0
    verified: tuple[VerifiedTarget, ...] = ()
    started: datetime | None = None
    held: tuple[HeldTarget, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The status as the values that JSON knows."""
        values: dict[str, Any] = plain(self)
        return values

    @staticmethod
    def from_dict(values: dict[str, Any]) -> TaskStatus:
        """The status that `to_dict` described; fields that are not known are left out.

        Raises StatusFormatError when a field is missing or of another type.
        """
        try:
            return shaped(TaskStatus, values)
        except ShapeError as error:
            raise StatusFormatError(
                f"the status of the task is not understood: {error}. Use the same version of"
                " replicator for the task and for this command"
            ) from error


def condition(status: TaskStatus) -> str:
    """``running``, ``retrying``, ``blocked (2 parts)``, ``waiting for a lock``, ``paused`` …"""
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
    """Whether the target, a source or Spark does not answer or get on, and the task tries again."""
    copy = status.copy
    return (
        status.writer.state.startswith("retrying")
        or any(source.state.startswith("reconnecting") for source in status.sources)
        or (copy is not None and copy.state == "copying" and bool(copy.waiting))
    )


def largest_lag(status: TaskStatus) -> float | None:
    """The largest lag of all sources; None where one is not known, or there is none."""
    lags = [source.lag_seconds for source in status.sources if source.lag_seconds is not None]
    return max(lags) if lags and len(lags) == len(status.sources) else None


def faults_of(status: TaskStatus) -> list[tuple[str, Fault]]:
    """What blocks the task or parts of it: each fault once, with what it blocks."""
    parts = [(f"{part.kind} {part.name}", part.error) for part in status.blocked]
    found = [(what, fault) for what, fault in parts if fault is not None]
    if status.error is not None and status.error not in [fault for _, fault in found]:
        found.insert(0, (f"task {status.task}", status.error))
    return found


def needs_operator(status: TaskStatus) -> bool:
    """Whether the task, or a part of it, does not go on before the operator does something.

    A lock that waits for shards, a server that is away and a target that waits for its copy need
    nobody; a task that was stopped is as its operator wants it.
    """
    return (
        status.state in ("killed", "paused", "pausing")
        or any(part.error is not None or not part.waits_for for part in status.blocked)
        or any(lock.state == "conflict" for lock in status.locks)
        or any(entry.state == "failed" for entry in status.reconciling)
    )

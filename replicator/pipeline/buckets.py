"""Buckets of one target: their rows and their watermarks in one transaction, tried until it
holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from functools import partial

from pymysql.err import MySQLError

from replicator.binlog.position import OFFSET_BITS
from replicator.crashpoints import CrashPoint, reach
from replicator.downstream.columns import TargetTable
from replicator.downstream.fence import OutOfStepError
from replicator.downstream.key_lookup import keys_there
from replicator.downstream.load_data import InexactLoadError
from replicator.downstream.noted_keys import note_keys
from replicator.downstream.session import Session
from replicator.downstream.statements import RowRefusedError
from replicator.downstream.transaction import OutOfPatienceError, transaction, until_done
from replicator.downstream.watermarks import (
    BucketMarks,
    Expected,
    lock_watermarks,
    save_watermarks,
)
from replicator.downstream.writing import DuplicateRowError, NetChanges, write_changes
from replicator.mysql.errors import ErrorCode, error_code, error_text
from replicator.mysql.names import Member
from replicator.pipeline.batch import ApplySettings, Outcome, TargetOutcome
from replicator.pipeline.entries import Entries
from replicator.pipeline.net_columns import PlanNumbers, net_changes
from replicator.pipeline.net_effect import DuplicateKeyError
from replicator.pipeline.raw_events import EventHeads
from replicator.watermark import Mark, Watermark

_SHOWN_BYTES = 400

_TOO_LARGE: dict[int, str] = {
    ErrorCode.TIDB_TXN_TOO_LARGE: "set writer: {batch-bytes: …} in the task file to less, or the"
    " target's performance.txn-total-size-limit to more",
    ErrorCode.TIDB_ENTRY_TOO_LARGE: "set the target's performance.txn-entry-size-limit to more"
    " than the row's size",
    ErrorCode.TIDB_MEMORY_EXCEED_FOR_QUERY: "set writer: {batch-bytes: …} in the task file to"
    " less, or the target's tidb_mem_quota_query to more",
}
"""What helps against TiDB's limits of a transaction, of a row and of a statement's memory (its
page "TiDB Configuration File"), by error code."""


@dataclass(frozen=True, slots=True)
class TargetWork:
    """The rows of a batch for a task's buckets of one target, in the order of arrival.

    ``events`` are the heads of those that ``entries`` name by their indexes, ``sources`` the names
    of their sources, ``plans`` what reads them; ``ends`` are the watermarks, by source, that the
    batch brings the target to, ``marks`` what their places are known by; ``expected`` what the
    buckets must have before that, of the sources and buckets that have entries. ``shared``: the
    target has several members.
    """

    target: TargetTable
    entries: Entries
    events: EventHeads
    sources: Sequence[str]
    plans: PlanNumbers
    ends: Mapping[str, Watermark]
    marks: Mapping[str, Mark]
    expected: Expected
    shared: bool = False


class LockedOutError(Exception):
    """The server has waited as long as the session lets it for what another one has locked."""


class CascadeInSafeModeError(Exception):
    """A change that foreign keys act on comes in safe mode: what they did is not known then."""

    def __init__(self, text: str, member: Member) -> None:
        super().__init__(text)
        self.member = member


FAILURES = (
    DuplicateKeyError,
    DuplicateRowError,
    RowRefusedError,
    OutOfStepError,
    LockedOutError,
    CascadeInSafeModeError,
    OutOfPatienceError,
    MySQLError,
    OSError,
)
"""What keeps a transaction from being committed, and is told as an outcome."""


def apply_buckets(work: TargetWork, settings: ApplySettings) -> TargetOutcome:
    """Write the buckets, exactly once however often it is called with the same rows.

    A lost connection, also one that is lost during COMMIT, is answered by doing them
    again: their watermarks tell what they have. What the target refuses comes back as an outcome.
    """
    try:
        return until_done(partial(_attempt, work, settings), patience=settings.patience)
    except FAILURES as error:
        return failed_outcome(work, error)


def failed_outcome(work: TargetWork, error: Exception) -> TargetOutcome:
    """What one of `FAILURES` says about the rows of a target."""
    if isinstance(error, DuplicateKeyError):
        return _duplicate(work, str(error), error.members, error.key)
    if isinstance(error, DuplicateRowError):
        return _duplicate(work, error.text, (error.member,), error.line)
    if isinstance(error, RowRefusedError):
        members = (error.member,) if error.member is not None else ()
        return _failed(work, Outcome.REFUSED, error.code, error.text, members, error.line)
    if isinstance(error, OutOfStepError):
        failed = _failed(work, Outcome.OUT_OF_STEP, 0, str(error))
        return replace(failed, mismatch=error.mismatch)
    if isinstance(error, LockedOutError):
        return _failed(work, Outcome.LOCKED, ErrorCode.ER_LOCK_WAIT_TIMEOUT, str(error))
    if isinstance(error, CascadeInSafeModeError):
        return _failed(work, Outcome.CASCADE_IN_SAFE_MODE, 0, str(error), (error.member,))
    if isinstance(error, OutOfPatienceError):
        of = error.error
        return _failed(work, Outcome.UNREACHABLE, error_code(of), error_text(of))
    return _failed(work, Outcome.REFUSED, error_code(error), error_text(error))


def _attempt(work: TargetWork, settings: ApplySettings, exact: bool) -> TargetOutcome:
    harmless = DuplicateKeyError, DuplicateRowError, InexactLoadError
    try:
        with transaction(settings.address, *harmless) as session:
            return _write(session, work, settings, exact=exact)
    except MySQLError as error:
        if error_code(error) == ErrorCode.ER_LOCK_WAIT_TIMEOUT:
            raise LockedOutError(error_text(error)) from error
        raise


def _write(
    session: Session, work: TargetWork, settings: ApplySettings, *, exact: bool
) -> TargetOutcome:
    name = work.target.name
    own, watermarks = lock_watermarks(
        session, settings.watermark_table, settings.fence, name, work.expected
    )
    events = work.events
    fresh = fresh_entries(work, watermarks)
    safe = events.before([settings.safe_until.get(source, 0) for source in work.sources])
    changes = net_changes(fresh, events.plan, safe, work.plans)
    if work.shared and settings.noted_table:
        for group in changes:
            note_group(session, work.target, settings.noted_table, group)
    counts = write_changes(
        session,
        work.target,
        changes,
        load_data=settings.load_data and not exact,
        exact=exact,
    )
    if safe[work.entries.event].any():
        counts.missing = 0
    reach(CrashPoint.ROWS_WRITTEN)
    moved = moved_marks(work, own, watermarks)
    if moved:
        save_watermarks(session, settings.watermark_table, name, moved, work.marks)
    reach(CrashPoint.WATERMARKS_WRITTEN)
    session.run(b"COMMIT")
    reach(CrashPoint.BUCKET_COMMITTED)
    return TargetOutcome(
        target=work.target.number,
        outcome=Outcome.DONE,
        skipped=len(work.entries) - len(fresh),
        left={**own, **moved},
        **asdict(counts),
    )


def moved_marks(work: TargetWork, own: BucketMarks, watermarks: BucketMarks) -> BucketMarks:
    """The watermarks that the work moves, of those that are its buckets' own."""
    return {
        (source, bucket): work.ends[source]
        for source, bucket in own
        if work.ends[source] > watermarks[source, bucket]
    }


def fresh_entries(work: TargetWork, watermarks: BucketMarks) -> Entries:
    """What the buckets do not have yet."""
    sources: dict[int, dict[str, Watermark]] = {}
    for (source, bucket), watermark in watermarks.items():
        sources.setdefault(bucket, {})[source] = watermark
    marks = {bucket: tuple(map(of.get, work.sources)) for bucket, of in sources.items()}
    later = {of: work.events.later_than(of) for of in set(marks.values())}
    if len(later) == 1:
        (everywhere,) = later.values()
        return work.entries.these(everywhere[work.entries.event])
    return work.entries.of_buckets({bucket: later[of] for bucket, of in marks.items()})


def note_group(session: Session, target: TargetTable, table: str, group: NetChanges) -> None:
    """Note the keys whose rows may be another shard's: what is deleted, and what is replaced."""
    columns, arrivals = group.key_columns, group.arrivals
    there = (arrivals[number] for number in keys_there(session, target, columns, arrivals))
    note_keys(session, table, target.name, columns, [*group.deletes, *there])


def _duplicate(
    work: TargetWork, message: str, members: tuple[Member, ...], row: bytes
) -> TargetOutcome:
    return _failed(work, Outcome.DUPLICATE, ErrorCode.ER_DUP_ENTRY, message, members, row)


def _failed(
    work: TargetWork,
    outcome: Outcome,
    code: int,
    message: str,
    members: tuple[Member, ...] = (),
    row: bytes = b"",
) -> TargetOutcome:
    advice = _TOO_LARGE.get(code)
    return TargetOutcome(
        target=work.target.number,
        outcome=outcome,
        code=code,
        message=f"{message}: {advice}" if advice else message,
        members=tuple(map(str, members)),
        places=_places(work, {member.source for member in members} or set(work.ends)),
        row=row[:_SHOWN_BYTES].decode("utf-8", "backslashreplace"),
    )


def _places(work: TargetWork, sources: Set[str]) -> tuple[str, ...]:
    """Up to where the binlogs were read that the rows are from."""
    found = []
    for source in sorted(sources & work.ends.keys()):
        key = work.ends[source].transaction
        file, offset = key >> OFFSET_BITS, key & ((1 << OFFSET_BITS) - 1)
        found.append(
            f"source {source}, at or before the transaction at offset {offset} of binlog file"
            f" number {file}"
        )
    return tuple(found)

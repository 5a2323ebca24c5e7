"""Writes buckets of a target: rows and watermarks in one transaction, repeated until committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.binlog.segments.row_events import RowEvents
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.tracked_keys import track_keys
from replicator.downstream.rows.bulk_statements import NotTypedError
from replicator.downstream.rows.key_lookup import keys_there
from replicator.downstream.rows.load_data import InexactLoadError
from replicator.downstream.rows.statements import (
    RowRefusedError,
    TargetChangedError,
    confirm_plan,
)
from replicator.downstream.rows.target_columns import TargetTable
from replicator.downstream.rows.transaction import OutOfPatienceError, transaction, until_done
from replicator.downstream.rows.watermark_table import (
    BucketMarks,
    Expected,
    lock_watermarks,
    save_watermarks,
)
from replicator.downstream.rows.write_session import Session
from replicator.downstream.rows.writing import DuplicateRowError, NetChanges, write_changes
from replicator.failpoints import Failpoint, reach
from replicator.kernels.compiled import Truths
from replicator.mysql.connection.prepared_statements import WireType
from replicator.mysql.errors import error_code, error_text
from replicator.mysql.names import Member
from replicator.mysql.row_values import HIDDEN, without_values
from replicator.pipeline.apply.batch import (
    ApplySettings,
    RefusedRow,
    RowPosition,
    TargetOutcome,
    WriteOutcome,
    place_of,
)
from replicator.pipeline.apply.cascade_changes import KeylessChildError
from replicator.pipeline.apply.net_effect import DuplicateKeyError
from replicator.pipeline.apply.vectorised_net_effect import PlanNumbers, net_changes
from replicator.rows.decoder.row_block import RowBlock
from replicator.watermark import Mark, Watermark

_SHOWN_BYTES = 400


@dataclass(frozen=True, slots=True)
class TargetWork:
    """The rows of a batch for a task's buckets of one target, in the order of arrival.

    Attributes:
        events: the events that ``entries`` refer to by index.
        plans: the plans by which the events are read.
        ends: the target's watermarks after the batch, by source.
        marks: identify the positions of ``ends``.
        expected: the earlier watermarks of the sources and buckets that have entries.
        shared: whether the target has several members.
        safe_sources: sources whose events are applied in safe mode in addition to the settings.
        types: if the rows are rows of parameters instead of lines, the types of these.
    """

    target: TargetTable
    entries: RowBlock
    events: RowEvents
    plans: PlanNumbers
    ends: Mapping[str, Watermark]
    marks: Mapping[str, Mark]
    expected: Expected
    shared: bool = False
    safe_sources: frozenset[str] = frozenset()
    types: tuple[WireType, ...] = ()

    def later_than(self, watermarks: Sequence[Watermark | None]) -> Truths:
        """Return which events are after the watermarks.

        ``watermarks``: one for each source, None for a source without events; compared as
        watermarks.
        """
        events, source = self.events, self.plans.source[self.events.kind]
        version, transaction, ordinal = (
            np.array([0 if mark is None else mark[part] for mark in watermarks], np.int64)[source]
            for part in range(3)
        )
        of = self.plans.version[events.kind]
        same_transaction = (events.transaction == transaction) & (events.ordinal > ordinal)
        same_version = (events.transaction > transaction) | same_transaction
        later: Truths = (of > version) | (of == version) & same_version
        return later

    def safe(self, settings: ApplySettings) -> Truths:
        """Return which events are of transactions that are applied in safe mode."""
        until = [settings.safe_until.get(source, 0) for source in self.plans.sources]
        always = [source in self.safe_sources for source in self.plans.sources]
        source = self.plans.source[self.events.kind]
        safe: Truths = self.events.transaction < np.array(until, np.int64)[source]
        return safe | np.array(always, np.bool_)[source]


class LockedOutError(Exception):
    """The session's lock timeout has expired while another session had the lock."""


class CascadeInSafeModeError(Exception):
    """A change in safe mode has effects by foreign keys, so these effects are unknown."""

    def __init__(self, text: str, member: Member, key: bytes) -> None:
        super().__init__(text)
        self.member = member
        self.key = key


FAILURES = (
    DuplicateKeyError,
    DuplicateRowError,
    RowRefusedError,
    FencedError,
    LockedOutError,
    CascadeInSafeModeError,
    KeylessChildError,
    OutOfPatienceError,
    TargetChangedError,
    MySQLError,
    OSError,
)
"""The errors that prevent a commit and are reported as an outcome."""


def apply_buckets(work: TargetWork, settings: ApplySettings) -> TargetOutcome:
    """Write the buckets exactly once, however often this is called with the same rows.

    After a lost connection, even during COMMIT, they are written again, after their watermarks. If
    the target refuses them, this is returned as an outcome.

    Raises NotTypedError if rows of parameters must be written as lines.
    """
    try:
        return until_done(partial(_attempt, work, settings), patience=settings.patience)
    except FAILURES as error:
        return failed_outcome(work, error, show_values=settings.show_values)


def failed_outcome(work: TargetWork, error: Exception, *, show_values: bool) -> TargetOutcome:
    """Return the outcome of one of `FAILURES`; with the row's values if these may be shown."""
    about_row = _row_outcome(work, error, show_values=show_values)
    if about_row is not None:
        failed, found = about_row
        return found.told(failed, show_values=show_values)
    if isinstance(error, FencedError):
        failed = _failed(work, WriteOutcome.OUT_OF_STEP, 0, str(error))
        return replace(failed, mismatch=error.mismatch)
    if isinstance(error, TargetChangedError):
        return _failed(work, WriteOutcome.CHANGED, 0, str(error))
    if isinstance(error, LockedOutError):
        return _failed(work, WriteOutcome.LOCKED, ER.LOCK_WAIT_TIMEOUT, str(error))
    if isinstance(error, OutOfPatienceError):
        of = error.error
        unreachable = _failed(work, WriteOutcome.UNREACHABLE, error_code(of), error_text(of))
        return replace(unreachable, waited=error.waited)
    code, text = error_code(error), error_text(error)
    shown = text if show_values or not code else without_values(text, code)
    return _failed(work, WriteOutcome.REFUSED, code, shown)


def _row_outcome(
    work: TargetWork, error: Exception, *, show_values: bool
) -> tuple[TargetOutcome, _RowFound] | None:
    """Return the outcome of an error about one row, and the row's position.

    Returns None for other errors.
    """
    if isinstance(error, DuplicateKeyError):
        key = _shown(error.key) if show_values else HIDDEN
        text = f"{' and '.join(map(str, error.members))} both hold the key {key}"
        found = _RowFound(work, error.key, keyed=True, members=error.members)
        return _failed(work, WriteOutcome.DUPLICATE, ER.DUP_ENTRY, text), found
    if isinstance(error, DuplicateRowError):
        text = error.text if show_values else without_values(error.text)
        members = (error.member,) if error.member is not None else ()
        found = _RowFound(work, error.line, members=members)
        failed = _failed(work, WriteOutcome.DUPLICATE, ER.DUP_ENTRY, text)
        refused = RefusedRow(error.text, tuple(column.name for column in error.columns), error.line)
        return replace(failed, refused=refused), found
    if isinstance(error, RowRefusedError):
        text = error.shown(values=show_values)
        members = (error.member,) if error.member is not None else ()
        found = _RowFound(work, error.line, keyed=error.keyed, members=members)
        return _failed(work, WriteOutcome.REFUSED, error.code, text), found
    if isinstance(error, CascadeInSafeModeError):
        found = _RowFound(work, error.key, keyed=True, members=(error.member,))
        return _failed(work, WriteOutcome.CASCADE_IN_SAFE_MODE, 0, str(error)), found
    if isinstance(error, KeylessChildError):
        return _failed(work, WriteOutcome.CASCADE_IN_SAFE_MODE, 0, str(error)), _RowFound(work, b"")
    return None


def _attempt(work: TargetWork, settings: ApplySettings, exact: bool) -> TargetOutcome:
    harmless = DuplicateKeyError, DuplicateRowError, InexactLoadError, NotTypedError
    if exact and work.types:
        raise NotTypedError("lines show which row is refused")
    try:
        with transaction(settings.address, *harmless) as session:
            return _write(session, work, settings, exact=exact)
    except MySQLError as error:
        if error_code(error) == ER.LOCK_WAIT_TIMEOUT:
            raise LockedOutError(error_text(error)) from error
        raise


def _write(
    session: Session, work: TargetWork, settings: ApplySettings, *, exact: bool
) -> TargetOutcome:
    name = work.target.name
    if work.types and not session.takes_typed_rows:
        raise NotTypedError("the server takes one row for each execution")
    own, watermarks = lock_watermarks(
        session, settings.watermark_table, settings.fence, name, work.expected
    )
    fresh = fresh_entries(work, watermarks)
    safe = work.safe(settings)
    is_safe = bool(safe[work.entries.event].any())
    changes = net_changes(fresh, work.events.kind, safe, work.plans)
    if work.types:
        changes = [replace(group, types=work.types) for group in changes]
    if work.shared and settings.tracked_table:
        table = settings.tracked_table
        changes = [track_group(session, work.target, table, group) for group in changes]
    counts = write_changes(
        session,
        work.target,
        changes,
        load_data=settings.load_data and not exact,
        exact=exact,
    )
    if is_safe:
        counts.missing = 0
    if changes:
        confirm_plan(session, work.target)
    reach(Failpoint.ROWS_WRITTEN)
    moved = moved_marks(work, own, watermarks)
    if moved:
        save_watermarks(session, settings.watermark_table, name, moved, work.marks)
    reach(Failpoint.WATERMARKS_WRITTEN)
    session.run(b"COMMIT")
    reach(Failpoint.BUCKET_COMMITTED)
    return TargetOutcome(
        target=work.target.number,
        outcome=WriteOutcome.DONE,
        skipped=len(work.entries) - len(fresh),
        left={**own, **moved},
        **asdict(counts),
    )


def moved_marks(work: TargetWork, own: BucketMarks, watermarks: BucketMarks) -> BucketMarks:
    """Return the changed watermarks among the buckets' own watermarks."""
    return {
        (source, bucket): work.ends[source]
        for source, bucket in own
        if source in work.ends and work.ends[source] > watermarks[source, bucket]
    }


def fresh_entries(work: TargetWork, watermarks: BucketMarks) -> RowBlock:
    """Return the rows that the buckets do not have yet."""
    sources: dict[int, dict[str, Watermark]] = {}
    for (source, bucket), watermark in watermarks.items():
        sources.setdefault(bucket, {})[source] = watermark
    marks = {bucket: tuple(map(of.get, work.plans.sources)) for bucket, of in sources.items()}
    later = {of: work.later_than(of) for of in set(marks.values())}
    if len(later) == 1:
        (everywhere,) = later.values()
        return work.entries.these(everywhere[work.entries.event])
    return work.entries.of_buckets(
        {bucket: later[of] for bucket, of in marks.items()}, work.target.buckets
    )


def track_group(session: Session, target: TargetTable, table: str, group: NetChanges) -> NetChanges:
    """Track the keys whose rows may be another shard's: deleted, replaced, or shared keys.

    Returns changes that also track the rows that they remove because of a unique value.
    """
    columns, arrivals = group.key_columns, group.arrivals
    there = (arrivals[number] for number in keys_there(session, target, columns, arrivals))
    track_keys(session, table, target.name, columns, [*group.deletes, *group.shared, *there])
    return replace(group, removed=partial(track_keys, session, table, target.name, columns))


@dataclass(frozen=True, slots=True)
class _RowFound:
    """The row events of a batch that have a row which the target refuses.

    ``line`` is the row's line, or with ``keyed`` its key's line; ``members`` are its shards, if
    known. The events are searched for only after an error, so nothing needs to be kept before.
    """

    work: TargetWork
    line: bytes
    keyed: bool = False
    members: tuple[Member, ...] = ()

    def told(self, failed: TargetOutcome, *, show_values: bool) -> TargetOutcome:
        """Return the outcome with the shards, the key, and the positions of the events."""
        found = self._images()
        if not found:
            sources = {member.source for member in self.members}
            return replace(
                failed,
                members=tuple(map(str, self.members)),
                positions=_places(self.work, sources) if sources else failed.positions,
            )
        event, image = next(iter(found.values()))
        plan = self.work.plans.plan(int(self.work.events.kind[event]))
        keys = self.work.entries.keys
        return replace(
            failed,
            members=tuple(map(str, found)),
            key=tuple(column.name for column in plan.key_columns),
            row=_shown(keys[image]) if show_values and plan.rows.key else "",
            positions=tuple(self._place(member, event) for member, (event, _) in found.items()),
        )

    def _images(self) -> dict[Member, tuple[int, int]]:
        """Return the last event and image of each shard with this row, in the shards' order."""
        entries, work = self.work.entries, self.work
        lines = entries.keys if self.keyed else entries.lines
        alike = np.flatnonzero(np.diff(lines.starts) == len(self.line) + 1)
        same = np.array([n for n in alike.tolist() if lines[n] == self.line], np.int64)
        found: dict[Member, tuple[int, int]] = {}
        # An insert is refused because of its new row, a deletion because of its former row.
        for images in (entries.before, entries.after):
            for at in np.flatnonzero(np.isin(images, same)).tolist():
                event = int(entries.event[at])
                member = work.plans.plan(int(work.events.kind[event])).member
                found[member] = event, int(images[at])
        if self.members:
            return {member: found[member] for member in self.members if member in found}
        last = max(found, key=lambda member: found[member][0], default=None)
        return {} if last is None else {last: found[last]}

    def _place(self, member: Member, event: int) -> RowPosition:
        return place_of(self.work.events, event, member.source, str(member))


def _shown(line: bytes) -> str:
    return line[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")


def _failed(work: TargetWork, outcome: WriteOutcome, code: int, message: str) -> TargetOutcome:
    return TargetOutcome(
        target=work.target.number,
        outcome=outcome,
        code=code,
        message=message,
        positions=_places(work, set(work.ends)),
    )


def _places(work: TargetWork, sources: Set[str]) -> tuple[RowPosition, ...]:
    return tuple(
        RowPosition(source, "", work.ends[source].transaction, work.ends[source].ordinal, 0)
        for source in sorted(sources & work.ends.keys())
    )

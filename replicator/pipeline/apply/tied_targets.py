"""Targets that foreign keys tie: their changes in the order of the sources, with the checks on.

InnoDB changes rows of a child without logging it. Where the target has the shards' foreign keys, it
makes the same changes, if the changes come in the order of the shard. So all tied targets of a
batch are written in one transaction, change by change: a net effect would hide a parent that was
deleted and came again. Where a shard's session had its foreign key checks off, or its server logs
what its keys do, the target's keys must not act either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.binlog.segments.row_events import RowEvents
from replicator.downstream.meta.tracked_keys import track_keys
from replicator.downstream.rows.literals import identifier
from replicator.downstream.rows.statements import (
    RowRefusedError,
    delete_keys,
    insert_rows,
    update_row,
)
from replicator.downstream.rows.target_columns import Restated
from replicator.downstream.rows.transaction import transaction, until_done
from replicator.downstream.rows.watermark_table import BucketMarks, lock_watermarks, save_watermarks
from replicator.downstream.rows.write_session import Session
from replicator.downstream.rows.writing import DuplicateRowError, WriteCounts, write_changes
from replicator.failpoints import Failpoint, reach
from replicator.kernels.compiled import Truths
from replicator.mysql.errors import DUPLICATE_KEY, error_code, error_text
from replicator.mysql.names import Member, folded
from replicator.pipeline.apply.batch import ApplySettings, TargetOutcome, WriteOutcome
from replicator.pipeline.apply.buckets import (
    FAILURES,
    CascadeInSafeModeError,
    LockedOutError,
    TargetWork,
    failed_outcome,
    fresh_entries,
    moved_marks,
    track_group,
)
from replicator.pipeline.apply.vectorised_net_effect import net_changes
from replicator.pipeline.plans.plan import TablePlan
from replicator.rows.decoder.row_block import RowBlock

FLAGS_AT = 19 + 6
"""Offset of the flags of a row event: after its header and the number of its table."""

NO_FOREIGN_KEY_CHECKS = 2


@dataclass(slots=True)
class _Part:
    """A tied target while it is written.

    ``referenced``: the target's columns, folded, that keys with an action refer to. ``unchecked``:
    which of the events a session wrote with ``foreign_key_checks=0``.
    """

    work: TargetWork
    referenced: frozenset[str]
    unchecked: Truths
    own: BucketMarks
    watermarks: BucketMarks
    fresh: RowBlock
    safe: Truths
    counts: WriteCounts = field(default_factory=WriteCounts)


@dataclass(slots=True)
class _Run:
    """Changes that one statement may write: images of inserted rows, or of deleted rows."""

    part: _Part
    plan: TablePlan
    checks: bool
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)

    def takes(self, other: _Run) -> bool:
        """Whether the next change may be a part of the same statement."""
        if self.part is not other.part or self.checks is not other.checks:
            return False
        mine, others = self.plan, other.plan
        if mine is not others and (
            mine.target_columns != others.target_columns or mine.key_columns != others.key_columns
        ):
            return False
        if self.before or other.before:
            # The order in which a parent's rows are deleted matters where the table refers to
            # itself.
            leaf = not self.part.referenced
            return leaf and not self.after and not other.after
        return True


class _Place:
    """The target that is being written, for error messages."""

    def __init__(self, work: TargetWork) -> None:
        self.work = work


def apply_tied(
    works: Sequence[TargetWork], tied: Mapping[int, frozenset[str]], settings: ApplySettings
) -> list[TargetOutcome]:
    """Write tied targets in one transaction, exactly once however often it is called.

    ``tied``: by number, the columns of each target that keys with an action refer to. Where one of
    them fails, nothing of any is written, and only its outcome comes back.
    """
    place = _Place(works[0])
    try:
        attempt = partial(_attempt, works, tied, settings, place)
        return until_done(attempt, patience=settings.patience)
    except FAILURES as error:
        return [failed_outcome(place.work, error, show_values=settings.show_values)]


def _attempt(
    works: Sequence[TargetWork],
    tied: Mapping[int, frozenset[str]],
    settings: ApplySettings,
    place: _Place,
    exact: bool,
) -> list[TargetOutcome]:
    try:
        # After any error the session is closed, and with it its setting of the checks.
        with transaction(settings.address) as session:
            parts = [_begin(session, work, tied[work.target.number], settings) for work in works]
            return _write(session, parts, settings, place, exact=exact)
    except MySQLError as error:
        if error_code(error) == ER.LOCK_WAIT_TIMEOUT:
            raise LockedOutError(error_text(error)) from error
        raise


def _write(
    session: Session,
    parts: Sequence[_Part],
    settings: ApplySettings,
    place: _Place,
    *,
    exact: bool,
) -> list[TargetOutcome]:
    for part in parts:
        place.work = part.work
        _write_safe(session, part, settings, exact=exact)
    session.run(b"SET @checks_before=@@SESSION.foreign_key_checks")
    checks = None
    for run in _runs(parts, settings):
        place.work = run.part.work
        if run.checks is not checks:
            checks = run.checks
            session.run(b"SET SESSION foreign_key_checks=%d" % checks)
        _write_run(session, run, settings, exact=exact)
    session.run(b"SET SESSION foreign_key_checks=@checks_before")
    reach(Failpoint.ROWS_WRITTEN)
    outcomes = []
    for part in parts:
        work = place.work = part.work
        moved = moved_marks(work, part.own, part.watermarks)
        if moved:
            name = work.target.name
            save_watermarks(session, settings.watermark_table, name, moved, work.marks)
        outcomes.append(
            TargetOutcome(
                target=work.target.number,
                outcome=WriteOutcome.DONE,
                skipped=len(work.entries) - len(part.fresh),
                left={**part.own, **moved},
                **asdict(part.counts),
            )
        )
    reach(Failpoint.WATERMARKS_WRITTEN)
    session.run(b"COMMIT")
    reach(Failpoint.BUCKET_COMMITTED)
    return outcomes


def _begin(
    session: Session, work: TargetWork, referenced: frozenset[str], settings: ApplySettings
) -> _Part:
    own, watermarks = lock_watermarks(
        session, settings.watermark_table, settings.fence, work.target.name, work.expected
    )
    fresh = fresh_entries(work, watermarks)
    unchecked = _unchecked(work.events)
    return _Part(work, referenced, unchecked, own, watermarks, fresh, work.safe(settings))


def _unchecked(events: RowEvents) -> Truths:
    """Which of the events a session wrote with foreign_key_checks=0.

    The flag NO_FOREIGN_KEY_CHECKS_F of a row event, behind the number of its table (MySQL's
    rows_event.h, "Rows_event").
    """
    unchecked: Truths = (events.data[events.begin + FLAGS_AT] & NO_FOREIGN_KEY_CHECKS) != 0
    return unchecked


def _write_safe(session: Session, part: _Part, settings: ApplySettings, *, exact: bool) -> None:
    """Changes that overlap with the copy are complete in any order; but not the effects of foreign
    keys."""
    work = part.work
    safe = part.safe[part.fresh.event]
    if not safe.any():
        return
    entries = part.fresh.these(safe)
    _refuse_cascades(part, entries, settings)
    changes = net_changes(entries, work.events.kind, part.safe, work.plans)
    if work.shared and settings.tracked_table:
        for group in changes:
            track_group(session, work.target, settings.tracked_table, group)
    load_data = settings.load_data and not exact
    part.counts = write_changes(
        session, work.target, changes, load_data=load_data, exact=exact, safe=True
    )
    part.counts.missing = 0
    part.fresh = part.fresh.these(~safe)


def _refuse_cascades(part: _Part, entries: RowBlock, settings: ApplySettings) -> None:
    if not part.referenced:
        return
    work = part.work
    rows = zip(entries.event.tolist(), entries.before.tolist(), entries.after.tolist(), strict=True)
    for event, before, after in rows:
        plan = work.plans.plan(int(work.events.kind[event]))
        if before < 0 or not _checked(part, event, settings):
            continue
        if after >= 0 and not _moves(part, plan, entries.lines[before], entries.lines[after]):
            continue
        raise CascadeInSafeModeError(
            f"a row of {plan.member} was deleted, or its key changed, during the copy or in safe"
            " mode. Foreign keys changed rows that refer to it, and the task may have copied"
            " these rows before or after that",
            plan.member,
            entries.keys[before],
        )


def _moves(part: _Part, plan: TablePlan, before: bytes, after: bytes) -> bool:
    """Whether an update changes a value that keys refer to."""
    old, new = before.split(b"\t"), after.split(b"\t")
    if len(old) != len(new):
        return True
    return any(
        folded(column.name) in part.referenced and a != b
        for column, a, b in zip(plan.target_columns, old, new, strict=True)
    )


def _checked(part: _Part, event: int, settings: ApplySettings) -> bool:
    """Whether foreign keys acted in the shard without logging it."""
    plans = part.work.plans
    source = plans.sources[int(plans.source[part.work.events.kind[event]])]
    return source not in settings.logs_cascades and not part.unchecked[event]


def _runs(parts: Sequence[_Part], settings: ApplySettings) -> Iterator[_Run]:
    """The changes of all targets in the order of their sources."""
    columns = [
        np.concatenate(arrays)
        for arrays in zip(
            *(
                (
                    np.full(len(part.fresh), number, np.int64),
                    np.arange(len(part.fresh)),
                    *(
                        of[part.fresh.event]
                        for of in (
                            part.work.events.ordinal,
                            part.work.events.transaction,
                            part.work.plans.source[part.work.events.kind],
                        )
                    ),
                )
                for number, part in enumerate(parts)
            ),
            strict=True,
        )
    ]
    number, entry, ordinal, transaction, source = columns
    order = np.lexsort((entry, ordinal, transaction, source))
    last: _Run | None = None
    for of, at in zip(number[order].tolist(), entry[order].tolist(), strict=True):
        run = _run(parts[of], at, settings)
        if last is None or not last.takes(run):
            if last is not None:
                yield last
            last = run
        else:
            last.before += run.before
            last.after += run.after
            last.members += run.members
    if last is not None:
        yield last


def _run(part: _Part, at: int, settings: ApplySettings) -> _Run:
    fresh = part.fresh
    event, before, after = int(fresh.event[at]), int(fresh.before[at]), int(fresh.after[at])
    plan = part.work.plans.plan(int(part.work.events.kind[event]))
    return _Run(
        part,
        plan,
        _checked(part, event, settings),
        [before] if before >= 0 else [],
        [after] if after >= 0 else [],
        [plan.member],
    )


def _write_run(session: Session, run: _Run, settings: ApplySettings, *, exact: bool) -> None:
    part, plan, target = run.part, run.plan, run.part.work.target
    lines = [part.fresh.lines[image] for image in run.after]
    keys = [part.fresh.keys[image] for image in run.before]
    gone = keys
    if keys and lines and part.fresh.keys[run.after[0]] == keys[0]:
        gone = []
    if gone and part.work.shared and settings.tracked_table:
        track_keys(session, settings.tracked_table, target.name, plan.key_columns, gone)
    if not lines:
        found = delete_keys(session, target, plan.key_columns, keys, exact=exact)
        part.counts.deleted += found
        part.counts.missing += len(keys) - found
        return
    try:
        if keys and _update(session, run, lines[0], keys[0]):
            part.counts.overwritten += 1
            return
        part.counts.missing += len(keys)
        filled = replace(target, filled=plan.target.filled)
        insert_rows(session, filled, plan.target_columns, lines, exact=exact)
        part.counts.inserted += len(lines)
    except RowRefusedError as error:
        error.member = run.members[error.index]
        if error.code in DUPLICATE_KEY:
            raise DuplicateRowError(error.text, error.member, error.line) from error
        raise


def _update(session: Session, run: _Run, line: bytes, key: bytes) -> bool:
    more = []
    for column, how in run.plan.restated:
        name = identifier(column)
        more.append(name + b"=" + (name if how is Restated.KEPT else b"DEFAULT"))
    columns, key_columns = run.plan.target_columns, run.plan.key_columns
    return update_row(session, run.part.work.target, columns, line, (key_columns, key), more)

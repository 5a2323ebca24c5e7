"""One bucket of one target: its rows and its watermarks in one transaction, tried until it
holds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple

from pymysql.err import MySQLError

from replicator.crashpoints import CrashPoint, reach
from replicator.downstream.columns import TargetTable
from replicator.downstream.load_data import InexactLoadError
from replicator.downstream.session import (
    Session,
    forget_session,
    session_for,
)
from replicator.downstream.statements import RowRefusedError
from replicator.downstream.watermarks import lock_watermarks, save_watermarks
from replicator.downstream.writing import DuplicateRowError, write_changes
from replicator.mysql.errors import ErrorCode, error_code, error_text, is_contention, is_unavailable
from replicator.pipeline.batch import ApplySettings, BucketOutcome, Outcome
from replicator.pipeline.net_effect import DuplicateKeyError, Entry, net_effect
from replicator.pipeline.plan import TablePlan
from replicator.watermark import Watermark

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 2.0
"""Seconds between attempts: doubled from the first to the longest, with a random part."""

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


class EventHead(NamedTuple):
    """Where an event comes from: its source's name, its watermark, and the plan that reads it."""

    source: str
    watermark: Watermark
    plan: TablePlan


@dataclass(frozen=True, slots=True)
class BucketWork:
    """The rows of a batch for one bucket, in the order of arrival.

    ``heads`` has at least the events that ``entries`` name by their numbers; ``ends`` are the
    watermarks, by source, that the batch brings the target to.
    """

    target: TargetTable
    bucket: int
    entries: Sequence[Entry]
    heads: Mapping[int, EventHead]
    ends: Mapping[str, Watermark]


def apply_bucket(work: BucketWork, settings: ApplySettings) -> BucketOutcome:
    """Write a bucket, exactly once however often it is called with the same rows.

    A lost connection, also one that is lost during COMMIT, is answered by doing the bucket
    again: its watermarks tell what it has. What the target refuses comes back as an outcome.
    """
    exact = False
    deadline = time.monotonic() + settings.patience
    pause = FIRST_PAUSE
    while True:
        try:
            with _transaction(settings) as session:
                return _write(session, work, settings, exact=exact)
        except InexactLoadError:
            exact = True
            continue
        except DuplicateKeyError as error:
            return _failed(
                work,
                Outcome.DUPLICATE,
                ErrorCode.ER_DUP_ENTRY,
                str(error),
                error.members,
                error.key,
            )
        except DuplicateRowError as error:
            return _failed(
                work,
                Outcome.DUPLICATE,
                ErrorCode.ER_DUP_ENTRY,
                error.text,
                (error.member,),
                error.line,
            )
        except RowRefusedError as error:
            return _failed(work, Outcome.REFUSED, error.code, error.text, (), error.line)
        except (MySQLError, OSError) as error:
            if not (is_unavailable(error) or is_contention(error)):
                return _failed(work, Outcome.REFUSED, error_code(error), error_text(error))
            if time.monotonic() > deadline:
                return _failed(work, Outcome.UNREACHABLE, error_code(error), error_text(error))
        time.sleep(pause * (0.5 + random.random()))
        pause = min(2 * pause, LONGEST_PAUSE)


@contextmanager
def _transaction(settings: ApplySettings) -> Iterator[Session]:
    """A transaction on this process's session; rolled back, or the session dropped, on errors."""
    try:
        session = session_for(settings.address)
        session.run(b"BEGIN")
        yield session
    except (DuplicateKeyError, DuplicateRowError, InexactLoadError):
        session.run(b"ROLLBACK")
        raise
    except BaseException:
        # Closing rolls back, whatever state the connection is in. After a refusal, too: a setting
        # of the server that is mended counts for connections that are opened afterwards.
        forget_session(settings.address)
        raise


def _write(
    session: Session, work: BucketWork, settings: ApplySettings, *, exact: bool
) -> BucketOutcome:
    sources = {work.heads[entry[0]].source for entry in work.entries}
    name = str(work.target)
    watermarks = lock_watermarks(session, settings.watermark_table, name, work.bucket, sources)
    heads = work.heads
    fresh = [e for e in work.entries if (h := heads[e[0]]).watermark > watermarks[h.source]]
    safe = {number for number, h in heads.items() if settings.safe(h.source, h.watermark)}
    changes = net_effect(fresh, lambda event: heads[event].plan, safe.__contains__)
    counts = write_changes(
        session,
        work.target,
        changes,
        load_data=settings.load_data and not exact,
        exact=exact,
    )
    if safe:
        counts.missing = 0
    reach(CrashPoint.ROWS_WRITTEN)
    moved = {s: work.ends[s] for s in sources if work.ends[s] > watermarks[s]}
    if moved:
        save_watermarks(session, settings.watermark_table, name, work.bucket, moved)
    reach(CrashPoint.WATERMARKS_WRITTEN)
    session.run(b"COMMIT")
    reach(CrashPoint.BUCKET_COMMITTED)
    return BucketOutcome(
        target=work.target.number,
        bucket=work.bucket,
        outcome=Outcome.DONE,
        skipped=len(work.entries) - len(fresh),
        **asdict(counts),
    )


def _failed(
    work: BucketWork,
    outcome: Outcome,
    code: int,
    message: str,
    members: tuple[str, ...] = (),
    row: bytes = b"",
) -> BucketOutcome:
    advice = _TOO_LARGE.get(code)
    return BucketOutcome(
        target=work.target.number,
        bucket=work.bucket,
        outcome=outcome,
        code=code,
        message=f"{message}: {advice}" if advice else message,
        members=members,
        row=row[:_SHOWN_BYTES].decode("utf-8", "backslashreplace"),
    )

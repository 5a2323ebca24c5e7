"""What a task does with its part of a batch: decode row events, apply buckets.

Everything it needs comes with the part as plain data: an executor may be another process on
another machine than the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from replicator.binlog.errors import BinlogError
from replicator.binlog.position import OFFSET_BITS
from replicator.crashpoints import CrashPoint, reach, take_settings
from replicator.downstream.watermarks import BucketKey, Expected
from replicator.pipeline.batch import ApplySettings, BucketOutcome, LeftOut, Outcome
from replicator.pipeline.bucket import BucketWork, apply_bucket
from replicator.pipeline.entries import Entries, by_bucket
from replicator.pipeline.net_columns import PlanNumbers
from replicator.pipeline.placement import Share
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.raw_events import RawEvents
from replicator.pipeline.row_filter import FilterError, passing
from replicator.rows.compiled import Integers
from replicator.rows.compiled_decoder import CompiledDecoder
from replicator.rows.row_block import RowBlock
from replicator.rows.values import NoRoomError
from replicator.watermark import NOTHING_APPLIED, Watermark

_UNUSABLE = (BinlogError, NoRoomError, FilterError)
"""What keeps a row event from being applied."""


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a batch know besides the rows.

    ``ends`` are the watermarks the batch brings targets to, by (source index, target number);
    ``left``, ``revision`` and ``shared`` those of `replicator.pipeline.batch.Batch`; ``crash`` the
    values of REPLICATOR_CRASH_AT and of REPLICATOR_CRASH_PID for `replicator.crashpoints`.
    """

    plans: tuple[TablePlan, ...]
    sources: tuple[str, ...]
    ends: Mapping[tuple[int, int], Watermark]
    left: Mapping[BucketKey, Watermark]
    revision: int
    shared: frozenset[int]
    settings: ApplySettings
    crash: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """What one task is given of a batch: all row events of the targets of its share, in the order
    of arrival; of their rows it applies those that belong into the buckets of its share."""

    job: Job
    events: RawEvents
    share: Share


@dataclass(slots=True)
class DecodedPart:
    """The rows of a part's buckets, by (target number, bucket).

    ``failures``: of targets with an event that could not be read. ``left_out``: the changes that
    the rules of a shard left out.
    """

    entries: dict[tuple[int, int], Entries] = field(default_factory=dict)
    failures: list[BucketOutcome] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def apply_part(part: Part) -> tuple[BucketOutcome | LeftOut, ...]:
    """Decode the events and apply the buckets, each in a transaction of its own."""
    take_settings(*part.job.crash)
    reach(CrashPoint.PART_RECEIVED)
    outcomes = tuple(_outcomes(part, decode_part(part)))
    reach(CrashPoint.PART_APPLIED)
    return outcomes


def decode_part(part: Part) -> DecodedPart:
    """Decode the events of a part."""
    decoded = DecodedPart()
    blocks: dict[int, list[RowBlock]] = {}
    for number in np.unique(part.events.plan).tolist():
        plan = part.job.plans[number]
        indexes = np.flatnonzero(part.events.plan == number)
        events = part.events.as_bytes(indexes.tolist())
        try:
            block, left_out = _block(plan, events)
        except _UNUSABLE:
            decoded.failures.append(_find_failure(part, plan, indexes, events))
        else:
            if plan.filtering is not None and left_out:
                names = plan.filtering.names
                found = LeftOut(plan.target.number, plan.member, names, left_out)
                decoded.left_out.append(found)
            of_target = blocks.setdefault(plan.target.number, [])
            of_target.append(replace(block, event=indexes[block.event]))
    targets = {plan.target.number: plan.target for plan in part.job.plans}
    for target, of_target in blocks.items():
        buckets = by_bucket(of_target, targets[target].buckets, part.share[target])
        decoded.entries.update(((target, bucket), rows) for bucket, rows in buckets.items())
    return decoded


def _block(plan: TablePlan, events: list[bytes]) -> tuple[RowBlock, int]:
    """The changes that go on, and how many do not."""
    block = _decoder(plan).decode(events)
    if plan.filtering is None:
        return block, 0
    passed = passing(plan.filtering, block)
    return passed, len(block.event) - len(passed.event)


@lru_cache(maxsize=4096)
def _decoder(plan: TablePlan) -> CompiledDecoder:
    return CompiledDecoder(
        plan.columns,
        plan.written,
        plan.key,
        plan.hashed,
        plan.generated,
        plan.until,
        plan.constants,
        plan.filtering.indexes if plan.filtering else (),
    )


def _find_failure(
    part: Part, plan: TablePlan, indexes: Integers, events: list[bytes]
) -> BucketOutcome:
    for index, event in zip(indexes.tolist(), events, strict=True):
        try:
            _block(plan, [event])
        except _UNUSABLE as error:
            transaction = int(part.events.transaction[index])
            ordinal = int(part.events.ordinal[index])
            file, offset = transaction >> OFFSET_BITS, transaction & ((1 << OFFSET_BITS) - 1)
            return BucketOutcome(
                plan.target.number,
                -1,
                _outcome_of(error),
                message=f"{plan.member}: row event {ordinal} of the transaction that begins at"
                f" offset {offset} of binlog file number {file} cannot be"
                f" {'filtered' if isinstance(error, FilterError) else 'read'}: {error}",
                members=(str(plan.member),),
            )
    raise AssertionError(f"{plan.member}: events fail together and not one by one")


def _outcome_of(error: Exception) -> Outcome:
    if isinstance(error, NoRoomError):
        return Outcome.NO_ROOM
    return Outcome.UNFILTERED if isinstance(error, FilterError) else Outcome.UNDECODABLE


def _outcomes(part: Part, decoded: DecodedPart) -> Iterator[BucketOutcome | LeftOut]:
    job = part.job
    # All tasks of a target decode all of its events, so each knows of a failure, or it would move
    # watermarks past the event. One of them tells.
    yield from (failure for failure in decoded.failures if 0 in part.share[failure.target])
    yield from (found for found in decoded.left_out if 0 in part.share[found.target])
    unreadable = {failure.target for failure in decoded.failures}
    numbers = PlanNumbers(job.plans)
    targets = {plan.target.number: plan.target for plan in job.plans}
    for (target, bucket), entries in sorted(decoded.entries.items()):
        if target in unreadable:
            continue
        ends = {
            job.sources[source]: watermark
            for (source, number), watermark in job.ends.items()
            if number == target
        }
        table = targets[target]
        sources = np.unique(part.events.source[entries.event]).tolist()
        left = {
            name: job.left.get((name, table.name, bucket), NOTHING_APPLIED)
            for name in (job.sources[source] for source in sources)
        }
        expected = Expected(job.revision, left)
        shared = target in job.shared
        work = BucketWork(
            table, bucket, entries, part.events, job.sources, numbers, ends, expected, shared
        )
        outcome = apply_bucket(work, job.settings)
        yield outcome
        if outcome.outcome is Outcome.UNREACHABLE:
            # Each further bucket would wait as long; the whole batch is to be applied again.
            return

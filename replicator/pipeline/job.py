"""What a task does with its part of a batch: decode row events, apply buckets.

Everything it needs comes with the part as plain data: an executor may be another process on
another machine than the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from replicator.binlog.errors import BinlogError
from replicator.binlog.position import OFFSET_BITS
from replicator.crashpoints import CrashPoint, reach, take_settings
from replicator.downstream.watermarks import BucketKey, Expected
from replicator.pipeline.batch import ApplySettings, BucketOutcome, Outcome
from replicator.pipeline.bucket import BucketWork, EventHead, apply_bucket
from replicator.pipeline.net_effect import DELETE, INSERT, Entry
from replicator.pipeline.placement import Share
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.raw_events import RawEvents
from replicator.pipeline.row_filter import FilterError, passing
from replicator.rows.compiled_decoder import compile_block_decoder
from replicator.rows.row_lines import RowImages, RowsDecoder
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
    """The rows of a part's buckets, by (target number, bucket), in the order of arrival.

    ``heads`` has for each event its (source index, watermark, plan index); an entry names its
    event by its index. ``failures``: of targets with an event that could not be read.
    """

    heads: list[tuple[int, Watermark, int]]
    entries: dict[tuple[int, int], list[Entry]] = field(default_factory=dict)
    failures: list[BucketOutcome] = field(default_factory=list)


def apply_part(part: Part) -> tuple[BucketOutcome, ...]:
    """Decode the events and apply the buckets, each in a transaction of its own."""
    take_settings(*part.job.crash)
    reach(CrashPoint.PART_RECEIVED)
    outcomes = tuple(_outcomes(part, decode_part(part)))
    reach(CrashPoint.PART_APPLIED)
    return outcomes


def decode_part(part: Part) -> DecodedPart:
    """Decode the events of a part."""
    events = part.events
    plan = events.plan.tolist()
    watermarks = map(
        Watermark, events.version.tolist(), events.transaction.tolist(), events.ordinal.tolist()
    )
    decoded = DecodedPart(list(zip(events.source.tolist(), watermarks, plan, strict=True)))
    by_plan: dict[int, list[int]] = {}
    for index, plan_index in enumerate(plan):
        by_plan.setdefault(plan_index, []).append(index)
    targets: dict[int, int] = {}
    for plan_index, indexes in by_plan.items():
        table = part.job.plans[plan_index]
        targets[table.target.number] = targets.get(table.target.number, 0) + 1
        of_plan = events.as_bytes(indexes)
        try:
            _decode(decoded, table, part.share[table.target.number], indexes, of_plan)
        except _UNUSABLE:
            decoded.failures.append(_find_failure(decoded, table, indexes, of_plan))
    for (target, _), entries in decoded.entries.items():
        if targets[target] > 1:
            entries.sort(key=_event_number)
    return decoded


def _event_number(entry: Entry) -> int:
    return entry[0]


def _decode(
    decoded: DecodedPart,
    plan: TablePlan,
    own: frozenset[int],
    indexes: list[int],
    events: list[bytes],
) -> None:
    images = _images(plan, events)
    target, buckets = plan.target.number, plan.target.buckets
    rows: Iterable[Entry] = zip(
        [indexes[i] for i in images.event],
        images.change,
        images.before_key,
        images.after_key,
        images.before,
        images.after,
        strict=True,
    )
    if buckets == 1:
        decoded.entries.setdefault((target, 0), []).extend(rows)
        return
    parts: list[list[Entry]] = [[] for _ in range(buckets)]
    for row, old, new in zip(rows, images.before_hash, images.after_hash, strict=True):
        change = row[1]
        if change == DELETE:
            parts[old % buckets].append(row)
        elif change == INSERT or old % buckets == new % buckets:
            parts[new % buckets].append(row)
        else:
            index, _, old_key, new_key, before, after = row
            parts[old % buckets].append((index, DELETE, old_key, None, before, None))
            parts[new % buckets].append((index, INSERT, None, new_key, None, after))
    for bucket in own:
        if parts[bucket]:
            decoded.entries.setdefault((target, bucket), []).extend(parts[bucket])


def _images(plan: TablePlan, events: list[bytes]) -> RowImages:
    images = _decoder(plan).decode(events)
    return images if plan.filtering is None else passing(plan.filtering, events, images)


@lru_cache(maxsize=4096)
def _decoder(plan: TablePlan) -> RowsDecoder:
    return compile_block_decoder(
        plan.columns,
        plan.written,
        plan.key,
        plan.hashed,
        plan.generated,
        plan.until,
        plan.constants,
    )


def _find_failure(
    decoded: DecodedPart, plan: TablePlan, indexes: list[int], events: list[bytes]
) -> BucketOutcome:
    for index, event in zip(indexes, events, strict=True):
        try:
            _images(plan, [event])
        except _UNUSABLE as error:
            _, (_, transaction, ordinal), _ = decoded.heads[index]
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


def _outcomes(part: Part, decoded: DecodedPart) -> Iterator[BucketOutcome]:
    job = part.job
    # All tasks of a target decode all of its events, so each knows of a failure, or it would move
    # watermarks past the event. One of them tells.
    yield from (failure for failure in decoded.failures if 0 in part.share[failure.target])
    unreadable = {failure.target for failure in decoded.failures}
    heads = {
        index: EventHead(job.sources[source], watermark, job.plans[plan])
        for index, (source, watermark, plan) in enumerate(decoded.heads)
    }
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
        sources = {heads[entry[0]].source for entry in entries}
        left = {s: job.left.get((s, table.name, bucket), NOTHING_APPLIED) for s in sources}
        expected = Expected(job.revision, left)
        shared = target in job.shared
        work = BucketWork(table, bucket, entries, heads, ends, expected, shared)
        outcome = apply_bucket(work, job.settings)
        yield outcome
        if outcome.outcome is Outcome.UNREACHABLE:
            # Each further bucket would wait as long; the whole batch is to be applied again.
            return

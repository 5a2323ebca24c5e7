"""The functions that run inside executors: decode row events, apply buckets.

Everything they need comes with the job as plain data: an executor may be another process on
another machine than the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from replicator.binlog.errors import BinlogError
from replicator.binlog.position import OFFSET_BITS
from replicator.crashpoints import take_settings
from replicator.downstream.watermarks import BucketKey, Expected
from replicator.pipeline.batch import ApplySettings, BucketOutcome, Outcome
from replicator.pipeline.bucket import BucketWork, EventHead, apply_bucket
from replicator.pipeline.net_effect import DELETE, INSERT, Entry
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.row_filter import FilterError, passing
from replicator.rows.row_lines import RowImages, RowsDecoder, compile_decoder
from replicator.rows.values import NoRoomError
from replicator.watermark import NOTHING_APPLIED, Watermark

OUTCOME_SCHEMA = "outcome binary"
SLICE_SCHEMA = "slot int, slice binary"

_UNUSABLE = (BinlogError, NoRoomError, FilterError)
"""What keeps a row event from being applied."""

_OUTCOME = pa.schema([("outcome", pa.binary())])
_SLICE = pa.schema([("slot", pa.int32()), ("slice", pa.binary())])


@dataclass(frozen=True, slots=True)
class Job:
    """What the functions of one batch know besides the rows.

    ``ends`` are the watermarks the batch brings targets to, by (source index, target number);
    ``left``, ``revision`` and ``shared`` those of `replicator.pipeline.batch.Batch`, ``slots`` the
    number of partitions; ``crash`` the values of REPLICATOR_CRASH_AT and of
    REPLICATOR_CRASH_PID for `replicator.crashpoints`.
    """

    plans: tuple[TablePlan, ...]
    sources: tuple[str, ...]
    ends: Mapping[tuple[int, int], Watermark]
    left: Mapping[BucketKey, Watermark]
    revision: int
    shared: frozenset[int]
    slots: int
    settings: ApplySettings
    crash: tuple[str, str]

    def slot(self, plan: TablePlan, bucket: int) -> int:
        """The partition that a bucket of a target is applied in."""
        return (plan.target.number + bucket) % self.slots


@dataclass(slots=True)
class DecodedSlice:
    """The rows of a run of events, by (target number, bucket), and the heads of these events.

    ``first`` is the number of the first event. A head is (source index, watermark, plan index).
    """

    first: int
    heads: dict[int, tuple[int, Watermark, int]] = field(default_factory=dict)
    entries: dict[tuple[int, int], list[Entry]] = field(default_factory=dict)
    failures: list[BucketOutcome] = field(default_factory=list)


def apply_fused(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode and apply in one partition: for small batches."""
    slices = [decode_slice(job, events) for events in _unpacked(batches)]
    yield from _outcomes(job, slices, report_failures=True)


def decode_to_slots(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode and cut the rows up by the partition that will apply them."""
    for events in _unpacked(batches):
        parts = _cut(job, decode_slice(job, events))
        data = [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts.values()]
        yield pa.record_batch([pa.array(list(parts), pa.int32()), pa.array(data)], _SLICE)


def apply_slots(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Apply the buckets of one partition."""
    slices: list[DecodedSlice] = []
    slots: set[int] = set()
    for batch in batches:
        slots.update(batch.column(0).to_pylist())
        slices.extend(pickle.loads(data.as_buffer()) for data in batch.column(1))
    yield from _outcomes(job, slices, report_failures=0 in slots)


def pack_events(events: pa.RecordBatch) -> bytes:
    """A run of events as one value (Arrow's stream format)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as writer:
        writer.write_batch(events)
    return bytes(sink.getvalue())


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column(0):
            yield from pa.ipc.open_stream(packed.as_buffer())


def decode_slice(job: Job, batch: pa.RecordBatch) -> DecodedSlice:
    """Decode a run of events; the rows of a bucket stay in the order of arrival."""
    number, plan, source, version, transaction, ordinal, event = (
        column.to_pylist() for column in batch.columns
    )
    decoded = DecodedSlice(number[0])
    watermarks = map(Watermark, version, transaction, ordinal)
    decoded.heads = dict(zip(number, zip(source, watermarks, plan, strict=True), strict=True))
    by_plan: dict[int, list[int]] = {}
    for index, plan_index in enumerate(plan):
        by_plan.setdefault(plan_index, []).append(index)
    targets: dict[int, int] = {}
    for plan_index, indexes in by_plan.items():
        table = job.plans[plan_index]
        targets[table.target.number] = targets.get(table.target.number, 0) + 1
        numbers = [number[i] for i in indexes]
        try:
            _decode(decoded, table, numbers, [event[i] for i in indexes])
        except _UNUSABLE:
            decoded.failures.append(_find_failure(decoded, table, numbers, event, indexes))
    for (target, _), entries in decoded.entries.items():
        if targets[target] > 1:
            entries.sort(key=_event_number)
    return decoded


def _event_number(entry: Entry) -> int:
    return entry[0]


def _decode(
    decoded: DecodedSlice, plan: TablePlan, numbers: list[int], events: list[bytes]
) -> None:
    images = _images(plan, events)
    target, buckets = plan.target.number, plan.target.buckets
    rows: Iterable[Entry] = zip(
        [numbers[i] for i in images.event],
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
            number, _, old_key, new_key, before, after = row
            parts[old % buckets].append((number, DELETE, old_key, None, before, None))
            parts[new % buckets].append((number, INSERT, None, new_key, None, after))
    for bucket, part in enumerate(parts):
        if part:
            decoded.entries.setdefault((target, bucket), []).extend(part)


def _images(plan: TablePlan, events: list[bytes]) -> RowImages:
    images = _decoder(plan).decode(events)
    return images if plan.filtering is None else passing(plan.filtering, events, images)


@lru_cache(maxsize=4096)
def _decoder(plan: TablePlan) -> RowsDecoder:
    return compile_decoder(
        plan.columns,
        plan.written,
        plan.key,
        plan.hashed,
        plan.generated,
        plan.until,
        plan.constants,
    )


def _find_failure(
    decoded: DecodedSlice,
    plan: TablePlan,
    numbers: list[int],
    events: list[bytes],
    indexes: list[int],
) -> BucketOutcome:
    for number, index in zip(numbers, indexes, strict=True):
        try:
            _images(plan, [events[index]])
        except _UNUSABLE as error:
            _, (_, transaction, ordinal), _ = decoded.heads[number]
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


def _cut(job: Job, decoded: DecodedSlice) -> dict[int, DecodedSlice]:
    parts: dict[int, DecodedSlice] = {}
    targets = {plan.target.number: plan for plan in job.plans}
    # Every partition must know of a failure, or it would move watermarks past the event.
    slots = range(job.slots) if decoded.failures else ()
    for slot in slots:
        parts[slot] = DecodedSlice(decoded.first, failures=decoded.failures)
    for (target, bucket), entries in decoded.entries.items():
        slot = job.slot(targets[target], bucket)
        part = parts.setdefault(slot, DecodedSlice(decoded.first))
        part.entries[target, bucket] = entries
        for entry in entries:
            if entry[0] not in part.heads:
                part.heads[entry[0]] = decoded.heads[entry[0]]
    return parts


def _outcomes(
    job: Job, slices: list[DecodedSlice], *, report_failures: bool
) -> Iterator[pa.RecordBatch]:
    take_settings(*job.crash)
    slices.sort(key=lambda part: part.first)
    failures = [failure for part in slices for failure in part.failures]
    unreadable = {failure.target for failure in failures}
    if report_failures:
        yield from map(_outcome_row, failures)
    heads: dict[int, EventHead] = {}
    merged: dict[tuple[int, int], list[Entry]] = {}
    for part in slices:
        for number, (source, watermark, plan) in part.heads.items():
            heads[number] = EventHead(job.sources[source], watermark, job.plans[plan])
        for place, entries in part.entries.items():
            merged.setdefault(place, []).extend(entries)
    targets = {plan.target.number: plan.target for plan in job.plans}
    for (target, bucket), entries in sorted(merged.items()):
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
        yield _outcome_row(outcome)
        if outcome.outcome is Outcome.UNREACHABLE:
            # Each further bucket would wait as long; the whole batch is to be applied again.
            return


def _outcome_row(outcome: BucketOutcome) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pickle.dumps(outcome)], pa.binary())], _OUTCOME)

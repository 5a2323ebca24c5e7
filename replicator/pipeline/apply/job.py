"""The work of a Spark task on its part of a batch: decodes row events and applies buckets.

The part has everything that the task needs as plain data, since an executor may run on another
machine than the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np

from replicator.binlog.errors import BinlogError
from replicator.binlog.segments.row_events import RowEvents
from replicator.downstream.rows.target_columns import TargetTable
from replicator.downstream.rows.watermark_table import Expected
from replicator.failpoints import Failpoint, reach, take_settings
from replicator.kernels.compiled import Integers
from replicator.pipeline.apply.batch import (
    AppliedKeys,
    ApplySettings,
    Batch,
    BatchResult,
    LeftOut,
    TargetOutcome,
    WriteOutcome,
    place_of,
)
from replicator.pipeline.apply.buckets import TargetWork, apply_buckets
from replicator.pipeline.apply.cascades import apply_cascading
from replicator.pipeline.apply.halves import apply_in_parts
from replicator.pipeline.apply.vectorised_net_effect import PlanNumbers
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.row_filter import FilterError, passing
from replicator.rows.decoder.block_decoder import CompiledDecoder, OwnBuckets
from replicator.rows.decoder.row_block import RowBlock, merged
from replicator.rows.values.value_readers import MappedValueError
from replicator.watermark import NOTHING_APPLIED

_UNUSABLE = (BinlogError, MappedValueError, FilterError)
"""The errors that prevent a row event from being applied."""


def apply_part(part: Batch, settings: ApplySettings) -> BatchResult:
    """Decode the events and apply the rows of the share, in one transaction per target."""
    take_settings(*settings.crash)
    reach(Failpoint.PART_RECEIVED)
    rows, decoded = _decoded(part, settings)
    outcomes = tuple(_outcomes(part, settings, rows, decoded.outcomes))
    left_out = tuple(found for found in decoded.left_out if 0 in part.share[found.target])
    reach(Failpoint.PART_APPLIED)
    keys = tuple(_applied_keys(part, settings.validated, rows)) if settings.validated else ()
    return BatchResult(outcomes, left_out, keys)


def _applied_keys(
    part: Batch, sources: Set[str], rows: Mapping[int, RowBlock]
) -> Iterator[AppliedKeys]:
    """Return the keys of the rows of some sources, by target and shard.

    Tables without a key have none.
    """
    plans = part.plans
    for number, block in rows.items():
        kind = part.events.kind[block.event]
        there = [images >= 0 for images in (block.before, block.after)]
        plan_of = np.concatenate([kind[found] for found in there])
        image_of = np.concatenate([block.before[there[0]], block.after[there[1]]])
        for at in np.unique(plan_of).tolist():
            plan = plans.plan(at)
            if plan.rows.key and plan.member.source in sources:
                lines = block.keys.take(np.unique(image_of[plan_of == at]))
                columns = tuple(column.name for column in plan.key_columns)
                yield AppliedKeys(number, plan.member, columns, bytes(lines.block))


def _decoded(part: Batch, settings: ApplySettings) -> tuple[dict[int, RowBlock], BatchResult]:
    """Return the rows of a part's buckets by target number, with failures and filtered changes.

    The failures are of targets with an event that could not be read. The filtered changes are the
    ones that the filters of a shard left out.
    """
    blocks: dict[int, list[RowBlock]] = {}
    failures: list[TargetOutcome] = []
    omitted: list[LeftOut] = []
    for plan, indexes in _read_alike(part):
        target = plan.target
        events = part.events.at(indexes)
        try:
            block, left_out = _block(plan, events, part.share[target.number])
        except _UNUSABLE:
            failures.append(_find_failure(part, settings, indexes, events))
        else:
            if plan.filtering is not None and left_out:
                names = plan.filtering.names
                omitted.append(LeftOut(target.number, plan.member, names, left_out))
            of_target = blocks.setdefault(target.number, [])
            of_target.append(replace(block, event=indexes[block.event]))
    targets = {plan.target.number: plan.target for plan in part.plans.kinds}
    entries = {
        number: merged(of_target, targets[number].buckets, part.share[number])
        for number, of_target in blocks.items()
    }
    found = {number: of_target for number, of_target in entries.items() if len(of_target)}
    return found, BatchResult(tuple(failures), tuple(omitted))


def _read_alike(part: Batch) -> Iterator[tuple[TablePlan, Integers]]:
    """Yield the indexes of events that one decoder reads, each time with one of their plans.

    Most shards have the same structure, so there are far fewer decoders than plans.
    """
    plans = part.plans
    kinds: dict[object, int] = {}
    kind_of = np.zeros(len(plans.kinds), np.int64)
    first: list[TablePlan] = []
    of_events = plans.kind[part.events.kind]
    for number in np.unique(of_events).tolist():
        plan = plans.kinds[number]
        # Each shard has separate filters, and a separate count of the rows that they leave out.
        alike = plan if plan.filtering is not None else (plan.target.number, plan.rows)
        kind_of[number] = kinds.setdefault(alike, len(kinds))
        if len(first) < len(kinds):
            first.append(plan)
    kind = kind_of[of_events]
    order = np.argsort(kind, kind="stable")
    ends = np.searchsorted(kind[order], np.arange(len(kinds)), side="right")
    yield from zip(first, np.split(order, ends[:-1]), strict=True)


def _block(
    plan: TablePlan, events: RowEvents, own: frozenset[int] | None = None
) -> tuple[RowBlock, int]:
    """Return the changes that pass the filters, and the number of the other changes."""
    raw_columns = plan.filtering.indexes if plan.filtering else ()
    decoder = _decoder(plan.rows, raw_columns)
    if plan.filtering is None:
        buckets = None if own is None else OwnBuckets(plan.target.buckets, own)
        return decoder.decode(events, buckets), 0
    block = decoder.decode(events)
    passed = passing(plan.filtering, block)
    return passed, len(block.event) - len(passed.event)


_decoder = lru_cache(maxsize=4096)(CompiledDecoder)


def _find_failure(
    part: Batch, settings: ApplySettings, indexes: Integers, events: RowEvents
) -> TargetOutcome:
    for place, index in enumerate(indexes.tolist()):
        plan = part.plans.plan(int(part.events.kind[index]))
        try:
            _block(plan, events.between(place, place + 1))
        except _UNUSABLE as error:
            done = "filtered" if isinstance(error, FilterError) else "read"
            return TargetOutcome(
                plan.target.number,
                _outcome_of(error),
                message=f"{plan.member}: a row event cannot be {done}: {_told(error, settings)}",
                members=(str(plan.member),),
                key=tuple(column.name for column in plan.key_columns),
                positions=(place_of(part.events, index, plan.member.source, str(plan.member)),),
            )
    raise AssertionError("events fail together and not one by one")


def _told(error: Exception, settings: ApplySettings) -> str:
    return (
        error.detail if settings.show_values and isinstance(error, MappedValueError) else str(error)
    )


def _outcome_of(error: Exception) -> WriteOutcome:
    if isinstance(error, MappedValueError):
        return WriteOutcome.NO_ROOM
    return WriteOutcome.UNFILTERED if isinstance(error, FilterError) else WriteOutcome.UNDECODABLE


def _outcomes(
    part: Batch,
    settings: ApplySettings,
    rows: Mapping[int, RowBlock],
    failures: Sequence[TargetOutcome],
) -> Iterator[TargetOutcome]:
    # All tasks of a target decode all of its events. So each of them knows of the failure and moves
    # no watermark past the event. One of them reports it.
    yield from (failure for failure in failures if 0 in part.share[failure.target])
    unreadable = {failure.target for failure in failures}
    numbers = PlanNumbers(part.plans)
    targets = {plan.target.number: plan.target for plan in part.plans.kinds}

    def apply(number: int) -> TargetOutcome:
        work = _work(part, targets[number], rows[number], numbers)
        return apply_in_parts([work], lambda works: [apply_buckets(works[0], settings)])[0]

    together = sorted(rows.keys() & part.cascading)
    # After an unreadable event, none of the targets with events of parents may continue.
    if together and not unreadable & part.cascading:
        works = [_work(part, targets[number], rows[number], numbers) for number in together]
        found = apply_in_parts(works, lambda some: apply_cascading(some, settings))
        yield from found
        if any(outcome.outcome is WriteOutcome.UNREACHABLE for outcome in found):
            return
    # Each further target would wait as long for an unavailable server. The whole batch must be
    # applied again anyway.
    yield from side_by_side(
        sorted(rows.keys() - unreadable - part.cascading),
        apply,
        last=lambda found: found.outcome is WriteOutcome.UNREACHABLE,
    )


def _work(part: Batch, target: TargetTable, entries: RowBlock, plans: PlanNumbers) -> TargetWork:
    ends = {
        source: part.ends[source, target.number]
        for source in plans.sources
        if (source, target.number) in part.ends
    }
    # With many targets, the part has many times more events than this target.
    entries, own = entries.with_own_events()
    events = part.events.at(own)
    touched = entries.touched(plans.source[events.kind], target.buckets)
    left = {
        (source, bucket): part.left.get((source, target.name, bucket), NOTHING_APPLIED)
        for source, bucket in ((plans.sources[at], bucket) for at, bucket in touched)
    }
    return TargetWork(
        target,
        entries,
        events,
        plans,
        ends,
        {name: part.reached[name].mark(ends[name]) for name in ends if name in part.reached},
        Expected(part.revision, left),
        target.number in part.shared,
    )


ABREAST = 3
"""Number of items that are processed at the same time, including the caller's thread."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_threads = ThreadPoolExecutor(ABREAST - 1, "side-by-side")


def side_by_side(
    items: Sequence[Item], do: Callable[[Item], Result], *, last: Callable[[Result], bool]
) -> list[Result]:
    """Return the results of ``do`` for the items, in any order; the caller processes a single item.

    A few items are processed at a time: while one waits for a server, another continues. The
    threads are kept, so each finds its session again (`replicator.downstream.rows.write_session`).

    After an error, or a result for which ``last`` is true, no other item is begun. All begun items
    are done when this returns, or raises the error of ``do``.
    """
    left = iter(items)
    results: list[Result] = []
    one_at_a_time = threading.Lock()
    over = threading.Event()

    def go_on() -> None:
        try:
            while not over.is_set():
                with one_at_a_time:
                    found = list(islice(left, 1))
                if not found:
                    return
                result = do(found[0])
                results.append(result)
                if last(result):
                    over.set()
        finally:
            # No item is left, or no further item may begin.
            over.set()

    others = [_threads.submit(go_on) for _ in range(min(ABREAST, len(items)) - 1)]
    try:
        go_on()
    finally:
        wait(others)
    for other in others:
        other.result()
    return results

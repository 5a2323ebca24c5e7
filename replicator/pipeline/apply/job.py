"""The work of a Spark task on its part of a batch: decodes row events and applies buckets.

The part has everything that the task needs as plain data, since an executor may run on another
machine than the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np

from replicator.downstream.rows.bulk_statements import NotTypedError
from replicator.downstream.rows.target_columns import TargetTable
from replicator.downstream.rows.watermark_table import Expected
from replicator.failpoints import Failpoint, reach, take_settings
from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.apply.batch import (
    AppliedKeys,
    ApplySettings,
    Batch,
    BatchResult,
    TargetOutcome,
    WriteOutcome,
)
from replicator.pipeline.apply.buckets import TargetWork, apply_buckets
from replicator.pipeline.apply.cascades import apply_cascading
from replicator.pipeline.apply.decoding import Types, decoded, typed_targets
from replicator.pipeline.apply.halves import apply_in_parts
from replicator.pipeline.apply.vectorised_net_effect import PlanNumbers
from replicator.rows.decoder.row_block import RowBlock
from replicator.watermark import NOTHING_APPLIED


def apply_part(part: Batch, settings: ApplySettings) -> BatchResult:
    """Decode the events and apply the rows of the share, in one transaction per target."""
    take_settings(*settings.crash)
    reach(Failpoint.PART_RECEIVED)
    numbers = PlanNumbers(part.plans)
    rows, types, found = decoded(part, settings, typed_targets(part, settings, numbers))
    read = _Rows(part, settings, numbers, rows, types)
    outcomes = tuple(_outcomes(read, found.outcomes))
    left_out = tuple(of for of in found.left_out if 0 in part.share[of.target])
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


@dataclass(frozen=True, slots=True)
class _Rows:
    """The decoded rows of a part.

    Attributes:
        rows: by the number of their target.
        types: the targets whose rows are parameters, with the types of these.
    """

    part: Batch
    settings: ApplySettings
    numbers: PlanNumbers
    rows: Mapping[int, RowBlock]
    types: Types

    def work(self, number: int, entries: RowBlock, types: tuple[WireType, ...] = ()) -> TargetWork:
        """Return the work for some rows of a target."""
        target = next(p.target for p in self.part.plans.kinds if p.target.number == number)
        return _work(self.part, target, entries, self.numbers, types)

    def applied(self, number: int) -> TargetOutcome:
        """Write the rows of a target.

        If the target refuses rows of parameters, the same rows are written as lines. Lines show
        which row is refused, and may be written in several transactions.
        """
        entries = self.rows[number]
        if number in self.types:
            with suppress(NotTypedError):
                typed = apply_buckets(self.work(number, entries, self.types[number]), self.settings)
                if typed.outcome not in _ABOUT_ROWS:
                    return typed
            again, _, found = decoded(self.part, self.settings, {}, only=number)
            if found.outcomes:
                return found.outcomes[0]
            entries = again[number]
        work = self.work(number, entries)
        return apply_in_parts([work], lambda works: [apply_buckets(works[0], self.settings)])[0]


_ABOUT_ROWS = frozenset({WriteOutcome.DUPLICATE, WriteOutcome.REFUSED})
"""The outcomes that lines report in full."""


def _outcomes(read: _Rows, failures: Sequence[TargetOutcome]) -> Iterator[TargetOutcome]:
    part, rows = read.part, read.rows
    # All tasks of a target decode all of its events. So each of them knows of the failure and moves
    # no watermark past the event. One of them reports it.
    yield from (failure for failure in failures if 0 in part.share[failure.target])
    unreadable = {failure.target for failure in failures}
    together = sorted(rows.keys() & part.cascading)
    # After an unreadable event, none of the targets with events of parents may continue.
    if together and not unreadable & part.cascading:
        works = [read.work(number, rows[number]) for number in together]
        found = apply_in_parts(works, lambda some: apply_cascading(some, read.settings))
        yield from found
        if any(outcome.outcome is WriteOutcome.UNREACHABLE for outcome in found):
            return
    # Each further target would wait as long for an unavailable server. The whole batch must be
    # applied again anyway.
    yield from side_by_side(
        sorted(rows.keys() - unreadable - part.cascading),
        read.applied,
        last=lambda found: found.outcome is WriteOutcome.UNREACHABLE,
    )


def _work(
    part: Batch,
    target: TargetTable,
    entries: RowBlock,
    plans: PlanNumbers,
    types: tuple[WireType, ...],
) -> TargetWork:
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
        types=types,
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

"""Divides the rows of a batch into halves if a target refuses them as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from replicator.kernels.compiled import Integers, Truths
from replicator.pipeline.apply.batch import TargetOutcome, WriteOutcome
from replicator.pipeline.apply.buckets import TargetWork
from replicator.rows.decoder.row_block import RowBlock
from replicator.watermark import Mark, Watermark


def apply_in_parts(
    works: Sequence[TargetWork], apply: Callable[[Sequence[TargetWork]], list[TargetOutcome]]
) -> list[TargetOutcome]:
    """Apply rows in one transaction, or in several if the target refuses one as too large.

    Args:
        works: the rows of one target, or of all targets with events of parents.
        apply: applies rows in one transaction.

    Returns:
        The outcome of each target, or of the target that has failed. The last rows of a failed
        target are not written, and no watermark covers them.
    """
    outcomes = apply(works)
    refused = next((outcome for outcome in outcomes if outcome.too_large), None)
    parts = halves(works) if refused is not None else None
    if refused is None or parts is None:
        return outcomes
    first = apply_in_parts(parts[0], apply)
    if any(outcome.outcome is not WriteOutcome.DONE for outcome in first):
        return first
    before = {outcome.target: outcome for outcome in first}
    uncertain = frozenset(source for outcome in first for source in outcome.uncertain)
    second = apply_in_parts([_behind(work, before, uncertain) for work in parts[1]], apply)
    if any(outcome.outcome is not WriteOutcome.DONE for outcome in second):
        late = sum(outcome.late for outcome in (*first, second[0]))
        uncertain |= set(second[0].uncertain)
        return [replace(second[0], late=late, uncertain=tuple(sorted(uncertain))), *second[1:]]
    return [_sum(before.get(outcome.target), outcome, refused) for outcome in second]


def _behind(
    work: TargetWork, before: Mapping[int, TargetOutcome], uncertain: frozenset[str]
) -> TargetWork:
    """Return the second half, which expects the watermarks after the first half.

    Rows of sources whose first half has uncertain effects are written in safe mode.
    """
    work = replace(work, safe_sources=work.safe_sources | uncertain)
    first = before.get(work.target.number)
    if first is None:
        return work
    left = {**work.expected.left, **first.left}
    return replace(work, expected=replace(work.expected, left=left))


def _sum(
    first: TargetOutcome | None, second: TargetOutcome, refused: TargetOutcome
) -> TargetOutcome:
    summed = replace(second, code=refused.code, message=refused.message)
    if first is None:
        return summed
    return replace(
        summed,
        left={**first.left, **second.left},
        inserted=first.inserted + second.inserted,
        overwritten=first.overwritten + second.overwritten,
        deleted=first.deleted + second.deleted,
        missing=first.missing + second.missing,
        skipped=first.skipped + second.skipped,
        transactions=first.transactions + second.transactions,
        late=first.late + second.late,
        uncertain=tuple(sorted({*first.uncertain, *second.uncertain})),
    )


def halves(works: Sequence[TargetWork]) -> tuple[list[TargetWork], list[TargetWork]] | None:
    """Return the rows as two consecutive transactions, or None for the rows of a single event.

    Each source's rows are cut at an event. So the watermark of the event before the cut
    distinguishes the halves, even inside a transaction of the source. Rows are cut in the order of
    arrival; if there are events of parents, in the order in which `apply_cascading` writes them.
    """
    of_parents = any(work.plans.of_parent.any() for work in works)
    order = (
        binlog_order([(work, work.entries) for work in works])
        if of_parents
        else [work.entries.event for work in works]
    )
    every = np.concatenate(order)
    distinct = np.unique(every)
    if len(distinct) < 2:
        return None
    middle = np.sort(every)[len(every) // 2]
    # Both halves have at least one event.
    cut = max(int(middle), int(distinct[1]))
    chosen = [numbers < cut for numbers in order]
    first = [
        _first_half(work, mine) for work, mine in zip(works, chosen, strict=True) if mine.any()
    ]
    second = [
        replace(work, entries=work.entries.these(~mine))
        for work, mine in zip(works, chosen, strict=True)
    ]
    return first, second


def binlog_order(works: Sequence[tuple[TargetWork, RowBlock]]) -> list[Integers]:
    """Return a number for each row, which is equal for the rows of an event.

    The numbers increase with the events.
    """
    places = [
        np.stack(
            [
                work.plans.source[work.events.kind][entries.event],
                work.events.transaction[entries.event],
                work.events.ordinal[entries.event],
            ],
            axis=1,
        )
        for work, entries in works
    ]
    _, numbers = np.unique(np.concatenate(places), axis=0, return_inverse=True)
    ends = np.cumsum([len(of) for of in places])[:-1]
    return list(np.split(numbers.reshape(-1), ends))


def _first_half(work: TargetWork, chosen: Truths) -> TargetWork:
    entries = work.entries.these(chosen)
    events = np.unique(entries.event)
    kinds = work.events.kind[events]
    ends: dict[str, Watermark] = {}
    for version, transaction, ordinal, source in zip(
        work.plans.version[kinds].tolist(),
        work.events.transaction[events].tolist(),
        work.events.ordinal[events].tolist(),
        work.plans.source[kinds].tolist(),
        strict=True,
    ):
        name, end = work.plans.sources[source], Watermark(version, transaction, ordinal)
        ends[name] = max(end, ends.get(name, end))
    return replace(work, entries=entries, ends=ends, marks=_marks(work, ends))


def _marks(work: TargetWork, ends: Mapping[str, Watermark]) -> dict[str, Mark]:
    """Return marks without GTIDs, since no GTID set is known for a position inside a batch."""
    return {source: work.marks.get(source, Mark())._replace(gtid="") for source in ends}

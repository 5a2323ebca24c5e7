"""Decoding the row events of a part of a batch: rows as lines, or as parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from replicator.binlog.errors import BinlogError
from replicator.binlog.segments.row_events import RowEvents
from replicator.kernels.compiled import Integers
from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.apply.batch import (
    ApplySettings,
    Batch,
    BatchResult,
    LeftOut,
    TargetOutcome,
    WriteOutcome,
    place_of,
)
from replicator.pipeline.apply.vectorised_net_effect import PlanNumbers
from replicator.pipeline.plans.parameter_plan import parameter_types
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.row_filter import FilterError, passing
from replicator.rows.decoder.block_decoder import BlockDecoder, CompiledDecoder, OwnBuckets
from replicator.rows.decoder.row_block import RowBlock, merged
from replicator.rows.values.column_format import RowFormat
from replicator.rows.values.value_readers import MappedValueError

TYPED_BYTES = 32 * 1024
"""The size of a target's events above which its rows become parameters.

A few rows are written by a statement with their text, which is as fast and exact at once.
"""

Types = Mapping[int, tuple[WireType, ...]]
"""The types of the parameters of each target whose rows are parameters, by its number."""

_UNUSABLE = (BinlogError, MappedValueError, FilterError)
"""The errors that prevent a row event from being applied."""


def typed_targets(part: Batch, settings: ApplySettings, numbers: PlanNumbers) -> Types:
    """Return the targets of a part whose rows are to be written as parameters.

    The shards of such a target have the same types. None of its events is in safe mode, in which
    the net effect may have rows that only statements can write.
    """
    if not (settings.typed and settings.load_data):
        return {}
    plans, kind = part.plans, part.events.kind
    until = [settings.safe_until.get(source, 0) for source in numbers.sources]
    is_safe = part.events.transaction < np.array(until, np.int64)[numbers.source[kind]]
    target = plans.targets[kind]
    sizes = np.bincount(target, part.events.end - part.events.begin)
    found: dict[int, tuple[WireType, ...]] = {}
    for number in np.unique(target).tolist():
        if sizes[number] <= TYPED_BYTES or number in part.cascading:
            continue
        mine = target == number
        kinds = np.unique(plans.kind[kind[mine]]).tolist()
        types = {parameter_types(plans.kinds[one]) for one in kinds}
        if len(types) == 1 and not is_safe[mine].any():
            (of_all,) = types
            if of_all is not None:
                found[number] = of_all
    return found


class _NotTypedError(Exception):
    """Events can't be read as rows of parameters."""


def decoded(
    part: Batch, settings: ApplySettings, types: Types, *, only: int | None = None
) -> tuple[dict[int, RowBlock], Types, BatchResult]:
    """Return the rows of a part's buckets by target number, with failures and filtered changes.

    The failures are of targets with an event that could not be read. The filtered changes are the
    ones that the filters of a shard left out. The second value has the targets whose rows are
    parameters.

    Args:
        types: the targets whose rows may be parameters.
        only: the one target to decode; None for all.
    """
    blocks: dict[int, list[RowBlock]] = {}
    failures: list[TargetOutcome] = []
    omitted: list[LeftOut] = []
    odd: set[int] = set()
    for plan, indexes in _read_alike(part):
        target = plan.target
        if only not in (None, target.number):
            continue
        events = part.events.at(indexes)
        try:
            typed = target.number in types
            block, left_out = _block(plan, events, part.share[target.number], typed=typed)
        except _NotTypedError:
            odd.add(target.number)
        except _UNUSABLE:
            failures.append(_find_failure(part, settings, indexes, events))
        else:
            if plan.filtering is not None and left_out:
                names = plan.filtering.names
                omitted.append(LeftOut(target.number, plan.member, names, left_out))
            of_target = blocks.setdefault(target.number, [])
            of_target.append(replace(block, event=indexes[block.event]))
    if odd:
        # The events are damaged, or have a form that only the reference decoder reads.
        left = {number: of for number, of in types.items() if number not in odd}
        return decoded(part, settings, left, only=only)
    targets = {plan.target.number: plan.target for plan in part.plans.kinds}
    entries = {
        number: merged(of_target, targets[number].buckets, part.share[number])
        for number, of_target in blocks.items()
    }
    found = {number: of_target for number, of_target in entries.items() if len(of_target)}
    return found, types, BatchResult(tuple(failures), tuple(omitted))


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
    plan: TablePlan, events: RowEvents, own: frozenset[int] | None = None, *, typed: bool = False
) -> tuple[RowBlock, int]:
    """Return the changes that pass the filters, and the number of the other changes."""
    if typed:
        assert own is not None, "only whole parts are read as parameters"
        read = _typed_decoder(plan.rows).decode(events, OwnBuckets(plan.target.buckets, own))
        if read is None:
            raise _NotTypedError
        return read, 0
    raw_columns = plan.filtering.indexes if plan.filtering else ()
    decoder = _decoder(plan.rows, raw_columns)
    if plan.filtering is None:
        buckets = None if own is None else OwnBuckets(plan.target.buckets, own)
        return decoder.decode(events, buckets), 0
    block = decoder.decode(events)
    passed = passing(plan.filtering, block)
    return passed, len(block.event) - len(passed.event)


_decoder = lru_cache(maxsize=4096)(CompiledDecoder)


@lru_cache(maxsize=4096)
def _typed_decoder(rows: RowFormat) -> BlockDecoder:
    return BlockDecoder(rows, typed=True)


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

"""What expression filters leave out: told by executors once, counted, shown and logged."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from structlog.testing import capture_logs

from actors.counting.task_counts import TaskCounts
from actors.writing.batched_writer import PACE, LeftOutRows
from replicator.binlog.events.event_header import EventType
from replicator.downstream.fence import Fence
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.mysql.column_types import ColumnType, Literal
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import ApplySettings, BatchResult, LeftOut
from replicator.pipeline.apply.job import apply_part
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.row_filter import row_filter, rules_for
from replicator.routing.expression.expression_filter import ExpressionFilters, ExpressionRule
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.status import TargetStatus, TaskStatus, now
from replicator.terminal.status import render
from tests.support.streams.row_columns import batch_of, plan_list, planned_events
from tests.unit.replicator.rows.decoder.test_reference_decoder import event

TARGET = TableName("d", "t")
SHARD = Member("a", TableName("s", "x"))
OTHER = Member("b", TableName("s", "x"))
STRUCTURE = Table("s", "x", (Column("id", "int(11)"),), (UniqueKey("PRIMARY", ("id",)),), "")
INT = ColumnFormat("id", ColumnType.LONG, 0)


def filtered_plan() -> TablePlan:
    rule = ExpressionRule("small", "s", "x", insert="id < 10")
    filters = ExpressionFilters([rule], case_sensitive=False)
    resolved = rules_for(filters, SHARD.name, STRUCTURE)
    assert resolved is not None
    return TablePlan(
        TargetTable(3, "d", "t", 4, True),
        SHARD,
        RowFormat((INT,), (0,), (0,), (0,)),
        (TargetColumn("id", Literal.NUMBER),),
        filtering=row_filter(resolved, STRUCTURE, (INT,), keyed=True),
    )


def inserted(*numbers: int) -> bytes:
    rows = b"".join(b"\xfe" + number.to_bytes(4, "little") for number in numbers)
    return event(EventType.WRITE_ROWS_V1, rows, 1)


@pytest.mark.parametrize(
    ("buckets", "told"),
    [(frozenset({0, 1, 2, 3}), True), (frozenset({0, 2}), True), (frozenset({1, 3}), False)],
)
def test_what_is_left_out_is_told_by_one_of_those_who_decode_it(
    buckets: frozenset[int], told: bool
) -> None:
    # Without a row that passes nothing is written, and the executor needs no target.
    events = [inserted(4, 5), inserted(6)]
    batch = batch_of(plan_list([filtered_plan()]), planned_events([0, 0], [1, 1], [1, 2], events))
    settings = ApplySettings(DatabaseAddress("h", 1, "u"), "`m`.`w`", Fence("`m`.`l`", 1), False)
    found = apply_part(replace(batch, share={3: buckets}), settings)
    assert found == BatchResult((), (LeftOut(3, SHARD, ("small",), 3),) if told else ())


def test_counts_are_of_the_target_and_records_are_of_a_shard_at_a_pace() -> None:
    registry, counts, clock = SchemaRegistry(), TaskCounts(), iter((0.0, 1.0, PACE, PACE + 1))
    number = registry.target(TARGET)
    rows = LeftOutRows(registry, counts, lambda: next(clock))
    with capture_logs() as logs:
        rows.note([LeftOut(number, SHARD, ("small",), 3)])
        rows.note([LeftOut(number, SHARD, ("small",), 4), LeftOut(number, OTHER, ("x",), 1)])
        rows.note([LeftOut(number, SHARD, ("small",), 5)])
        rows.note([LeftOut(number, SHARD, ("small",), 6)])
    assert counts.targets[TARGET].filtered == 19
    assert counts.rows == 0
    told = [(log["event"], log["source"], log["rows"], log["rules"]) for log in logs]
    assert told == [
        ("rows.filtered", "a", 3, ["small"]),
        ("rows.filtered", "b", 1, ["x"]),
        ("rows.filtered", "a", 9, ["small"]),
    ]


def test_the_status_shows_them_where_there_are_any() -> None:
    def shown(target: TargetStatus) -> str:
        out = io.StringIO()
        status = TaskStatus("x", "running", now(), 1, targets=(target,))
        Console(width=160, file=out).print(render(status))
        return out.getvalue()

    target = TargetStatus("d.t", inserted=7)
    assert "filtered" not in shown(target)
    text = shown(replace(target, filtered=1234))
    assert "filtered" in text
    assert "1\N{NARROW NO-BREAK SPACE}234" in text

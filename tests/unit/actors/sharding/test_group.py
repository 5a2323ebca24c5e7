"""What all sharding groups do with rows: those that the target has already are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pytest

from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import TargetSegment, WriterMessage
from actors.sharding.group import GroupActor
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.segments.row_events import RowEvents
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import Watermark
from tests.support.streams.row_columns import places, row_events

TARGET = TableName("m", "t")
TABLE_MAP = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())


class Passing(GroupActor):
    """A group that passes on the rows of one version, but those that the target has."""

    rows_of = 0

    @property
    def version(self) -> int:
        return self.rows_of

    async def decide(self, message: TargetSegment) -> TargetSegment:
        rows = message.rows
        return message if rows is None else replace(message, rows=self.after_low_watermark(rows))


class Bench:
    """A group with members t1 and t2 of source a, and a mailbox in the writer's place."""

    def __init__(
        self,
        low_watermark: Watermark | None = None,
        others: bool = False,
        copied: Mapping[int, int] | None = None,
    ) -> None:
        self.registry = SchemaRegistry()
        for table in ("t1", "t2") if others else ("t1",):
            self.registry.join(Member("a", TableName("s", table)), TARGET)
        for number, place in (copied or {}).items():
            self.registry.copied(number, place)
        self.writer: Mailbox[WriterMessage] = Mailbox(100)
        target = self.registry.target(TARGET)
        self.group = Passing("a", target, self.registry, self.writer, low_watermark)

    async def rows(self, *places: tuple[int, int], members: Sequence[int] = ()) -> TargetSegment:
        events = row_events(
            [(member, TABLE_MAP) for member in list(members) or [0] * len(places)],
            [transaction for transaction, _ in places],
            [ordinal for _, ordinal in places],
        )
        return await self._send(TargetSegment("a", 0, 0, self.group.target, events))

    async def _send(self, message: TargetSegment) -> TargetSegment:
        await self.group.on_message(message)
        part = await self.writer.get()
        assert isinstance(part, TargetSegment)
        return part


@pytest.mark.parametrize(
    ("low_watermark", "left"),
    [
        (None, [(5, 1), (5, 2), (8, 1)]),
        (Watermark(0, 4, 9), [(5, 1), (5, 2), (8, 1)]),
        (Watermark(0, 5, 1), [(5, 2), (8, 1)]),
        (Watermark(0, 5, 2), [(8, 1)]),
        (Watermark(0, 8, 1), []),
    ],
)
async def test_rows_up_to_the_low_watermark_are_left_out(
    low_watermark: Watermark | None, left: list[tuple[int, int]]
) -> None:
    part = await Bench(low_watermark).rows((5, 1), (5, 2), (8, 1))
    assert places(part.rows) == left


async def test_a_low_watermark_of_an_older_version_leaves_nothing_out() -> None:
    bench = Bench(Watermark(0, 100, 1))
    bench.group.rows_of = 1
    assert (await bench.rows((12, 1))).rows is not None


async def test_rows_that_were_copied_are_left_out_of_each_member_up_to_its_own_place() -> None:
    bench = Bench(others=True, copied={0: 10, 1: 20})
    assert (await bench.rows((5, 1), (6, 1), members=[0, 1])).rows is None
    part = await bench.rows((8, 1), (10, 1), (12, 1), (20, 1), members=[0, 0, 1, 1])
    assert part.rows is not None
    members = [part.rows.kinds[kind].member for kind in part.rows.kind]
    assert list(zip(members, part.rows.transaction, strict=True)) == [(0, 10), (1, 20)]


async def test_behind_the_places_of_the_copy_no_row_is_looked_at_any_more() -> None:
    class Unread(np.ndarray[Any, Any]):
        def __array_ufunc__(self, *_: Any, **__: Any) -> NoReturn:
            raise AssertionError("each row was looked at")

    def unread(at: int) -> RowEvents:
        rows = row_events([(0, TABLE_MAP)], [at], [1])
        return replace(rows, transaction=rows.transaction.view(Unread))

    bench = Bench(others=True, copied={0: 10, 1: 20})
    for at in (9, 15):
        with pytest.raises(AssertionError, match="each row"):
            await bench.group.on_message(TargetSegment("a", 0, 0, bench.group.target, unread(at)))
    rows = unread(20)
    await bench.group.on_message(TargetSegment("a", 0, 0, bench.group.target, rows))
    part = await bench.writer.get()
    assert isinstance(part, TargetSegment)
    assert part.rows is rows

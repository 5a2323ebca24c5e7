"""The group actor for DDL that is not coordinated: what it passes on, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import pytest

from actors.actor import Mailbox
from actors.faults import FatalError
from actors.messages import GroupSaved, TargetSegment, WriterMessage
from actors.sharding.coordination import Unit
from actors.sharding.uncoordinated.change_entries import plain_entry
from actors.sharding.uncoordinated.group import UncoordinatedGroup
from actors.sharding.uncoordinated.mode import Uncoordinated
from actors.writing.segment_tracker import SourceState
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.classify import classify
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind, effects_of
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import GroupState
from replicator.watermark import Watermark
from tests.support.streams.row_columns import places, row_events

TARGET = TableName("m", "t")
TABLE_MAP = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())


def saved(version: int, *members: tuple[int, int]) -> GroupSaved:
    return GroupSaved(members, GroupState(version, ()))


def route(name: TableName) -> TableName | None:
    return TARGET if name.schema == "s" and name.table else None


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
        self.group = UncoordinatedGroup(
            "a",
            self.registry.target(TARGET),
            self.registry,
            self.writer,
            version=0,
            keep_databases=False,
            low_watermark=low_watermark,
        )

    async def rows(self, *places: tuple[int, int], members: Sequence[int] = ()) -> TargetSegment:
        events = row_events(
            [(member, TABLE_MAP) for member in list(members) or [0] * len(places)],
            [transaction for transaction, _ in places],
            [ordinal for _, ordinal in places],
        )
        return await self._send(TargetSegment("a", 0, 0, self.group.target, events))

    async def ddl(self, sql: str) -> TargetSegment:
        effects = effects_of(
            classify(sql, default_schema="s"),
            route,
            [self.registry.member(n).name for n in self.registry.members_in("a")],
        )
        mine: tuple[Effect, ...] = tuple(e for e in effects if e.target == TARGET)
        return await self.effects(*mine, sql=sql)

    async def effects(self, *effects: Effect, sql: str) -> TargetSegment:
        statement = Statement("s", sql, 9, 0)
        return await self._send(
            TargetSegment("a", 0, 0, self.group.target, None, effects, statement)
        )

    async def _send(self, message: TargetSegment) -> TargetSegment:
        await self.group.on_message(message)
        part = await self.writer.get()
        assert isinstance(part, TargetSegment)
        return part


async def test_rows_are_passed_on_with_the_version_they_belong_to() -> None:
    bench = Bench()
    assert (await bench.rows((5, 1))).version == 0
    altered = await bench.ddl("ALTER TABLE t1 ADD c INT")
    assert altered.ddl is not None
    assert altered.ddl.version == 1
    assert altered.saved == saved(1, (0, 1))
    assert (await bench.rows((12, 1))).version == 1


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
    await bench.ddl("ALTER TABLE t1 ADD c INT")
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


REMOVING = (
    "DROP TABLE t1",
    "TRUNCATE TABLE t1",
    "ALTER TABLE t1 DROP PARTITION p",
    "ALTER TABLE t1 TRUNCATE PARTITION ALL",
    "ALTER TABLE t1 DISCARD TABLESPACE",
)


@pytest.mark.parametrize("sql", REMOVING)
@pytest.mark.parametrize("others", [False, True])
async def test_rows_of_other_shards_are_never_dropped(sql: str, others: bool) -> None:
    part = await Bench(others=others).ddl(sql)
    # Recorded and counted either way: another reading must not decide anew.
    assert part.ddl is not None
    assert (part.ddl.version, part.ddl.effect.skipped) == (1, others)


async def test_what_the_operator_has_run_instead_of_a_removal_is_run() -> None:
    bench = Bench(others=True)
    before = "ALTER TABLE `m`.`t` ADD c INT"
    sql = "ALTER TABLE t1 DROP PARTITION p"
    (effect,) = effects_of(classify(sql, default_schema="s"), route, ())
    for instead, run in (
        ((before,), (before,)),
        ((before, effect.sql), (before,)),
        ((), ()),
    ):
        part = await bench.effects(replace(effect, instead=instead), sql=sql)
        assert part.ddl is not None
        assert part.ddl.effect.instead == run


@pytest.mark.parametrize("others", [False, True])
async def test_a_replaced_table_is_made_anew_unless_others_share_it(others: bool) -> None:
    part = await Bench(others=others).ddl("CREATE OR REPLACE TABLE t1 (a INT)")
    assert part.ddl is not None
    effect = part.ddl.effect
    assert effect.instead == (None if others else (effect.clears, effect.sql))


async def test_a_table_that_moves_along_leaves_the_history_of_its_target_behind() -> None:
    def routed(name: TableName) -> TableName:
        return TARGET if name.table.startswith("t") else TableName("m", name.table)

    sql = "RENAME TABLE x TO y, t1 TO x, y TO t1"
    found = effects_of(classify(sql, default_schema="s"), routed, ())
    mine = [effect for effect in found if effect.target == TARGET]
    assert [effect.kind for effect in mine] == [EffectKind.MOVE_OUT, EffectKind.MOVE_IN]
    part = await Bench().effects(*mine, sql=sql)
    assert part.ddl is not None
    assert (part.ddl.effect.kind, part.ddl.effect.skipped) == (EffectKind.MOVE_IN, True)
    entry = plain_entry(Member("a", mine[1].table), part.ddl.effect)
    assert entry is not None
    assert entry.reset


@pytest.mark.parametrize("sql", ["RENAME TABLE t1 TO x", "RENAME TABLE x TO t9"])
async def test_a_table_never_moves_between_targets_with_rows_of_others(sql: str) -> None:
    def routed(name: TableName) -> TableName:
        return TARGET if name.table.startswith("t") else TableName("m", name.table)

    bench = Bench(others=True)
    found = effects_of(classify(sql, default_schema="s"), routed, ())
    (mine,) = [effect for effect in found if effect.target == TARGET]
    with pytest.raises(FatalError, match=r"other shards share m\.t") as caught:
        await bench.effects(mine, sql=sql)
    assert caught.value.event == "ddl.move-in"
    part = await bench.effects(replace(mine, instead=()), sql=sql)
    assert part.saved is not None


async def test_an_override_of_a_replaced_table_decides_what_is_run() -> None:
    bench = Bench()
    sql = "CREATE OR REPLACE TABLE t1 (a INT)"
    (effect,) = effects_of(classify(sql, default_schema="s"), route, ())
    for instead, run in (((), ()), (("x", effect.sql), ("x", effect.clears, effect.sql))):
        part = await bench.effects(replace(effect, instead=instead), sql=sql)
        assert part.ddl is not None
        assert part.ddl.effect.instead == run


async def test_dropped_and_created_members_leave_and_join() -> None:
    bench = Bench(others=True)
    assert (await bench.ddl("DROP TABLE t1")).saved == saved(1, (1, 1))
    assert (await bench.ddl("CREATE TABLE t3 (a INT)")).saved == saved(2, (1, 2), (2, 2))


async def test_a_renamed_member_keeps_its_version_and_structure() -> None:
    bench = Bench()
    await bench.ddl("ALTER TABLE t1 ADD c INT")
    part = await bench.ddl("RENAME TABLE t1 TO t9")
    assert part.ddl is not None
    assert part.ddl.effect.skipped, "it is noted in the history of the target, and not executed"
    assert part.ddl.version == 1
    assert part.saved == saved(1, (1, 1))
    assert bench.registry.member(1).name.table == "t9"


def started(bench: Bench, groups: dict[int, GroupSaved], low_watermark: Watermark | None) -> int:
    """The version that a group starts with, from a checkpoint."""
    low_watermarks = {bench.group.target: low_watermark} if low_watermark else {}
    state = SourceState(None, groups)
    unit = SimpleNamespace(source="a", state=state, low_watermarks=low_watermarks)
    group = Uncoordinated(bench.registry, bench.writer).make_group(
        cast(Unit, unit), bench.group.target
    )
    return group.version


async def test_a_group_that_lost_its_last_member_goes_on_counting_where_it_was() -> None:
    bench = Bench()
    part = await bench.ddl("DROP TABLE t1")
    assert part.saved is not None
    assert started(bench, {bench.group.target: part.saved}, Watermark(0, 5, 1)) == 1


def test_statements_that_will_be_read_again_are_not_counted_before() -> None:
    # CREATE TABLE … SELECT, saved at its beginning: some of its rows are applied, as version 1.
    assert started(Bench(), {}, Watermark(1, 5, 3)) == 0


async def test_a_drop_of_a_table_that_is_not_there_removes_no_rows_of_a_later_shard() -> None:
    """A shard of another source may have made the target before the statement is executed."""
    bench = Bench()
    first = await bench.ddl("DROP TABLE IF EXISTS t1")
    assert first.ddl is not None
    assert first.ddl.effect.instead is None
    second = await bench.ddl("DROP TABLE IF EXISTS t1")
    assert second.ddl is not None
    assert second.ddl.effect.instead == ()

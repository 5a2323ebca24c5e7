"""Statements about databases: which of them are executed, and how they are counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import DdlItem, GroupSaved, TargetSegment, WriterMessage
from actors.sharding.database_group import DatabaseGroup
from actors.sharding.shard_mode import Unit
from actors.writing.segment_tracker import SourceState
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import effects_of
from replicator.schema.registry.registry import SchemaRegistry

DATABASE = TableName("m", "")


def route(name: TableName) -> TableName:
    return TableName("m", name.table)


class Bench:
    """The group of a database, with a shard in it; ``others``: a shard of another database, too."""

    def __init__(
        self, *, drops: bool = True, others: bool = False, saved: GroupSaved | None = None
    ):
        self.registry = SchemaRegistry()
        for schema in ("s", "s2") if others else ("s",):
            self.registry.join(Member("a", TableName(schema, "t")), TableName("m", "t"))
        target = self.registry.target(DATABASE)
        state = SourceState(None, {} if saved is None else {target: saved})
        unit = cast(Unit, SimpleNamespace(source="a", state=state, low_watermarks={}))
        writer: Mailbox[WriterMessage] = Mailbox(100)
        self.group = DatabaseGroup(unit, target, self.registry, writer, drops=drops)

    async def put(self, sql: str) -> tuple[DdlItem, TargetSegment]:
        members = [self.registry.member(n).name for n in self.registry.members_in("a")]
        effects = effects_of(classify(sql, default_schema="s"), route, members)
        own = tuple(effect for effect in effects if effect.target == DATABASE)
        statement = Statement("s", sql, 9, 0)
        part = await self.group.decide(
            TargetSegment("a", 0, 0, self.group.target, None, own, statement)
        )
        assert part.ddl is not None
        return part.ddl, part


@pytest.mark.parametrize(
    ("drops", "others", "executed"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
async def test_a_database_goes_with_the_last_in_it(
    *, drops: bool, others: bool, executed: bool
) -> None:
    item, _ = await Bench(drops=drops, others=others).put("DROP DATABASE s")
    # Recorded and counted either way: another reading must not decide anew.
    assert (item.version, item.effect.skipped) == (1, not executed)


@pytest.mark.parametrize("others", [False, True])
async def test_a_replaced_database_is_dropped_unless_others_share_it(*, others: bool) -> None:
    item, _ = await Bench(others=others).put("CREATE OR REPLACE DATABASE s")
    effect = item.effect
    assert effect.instead == (None if others else (effect.clears, effect.sql))


async def test_a_group_goes_on_counting_where_it_was() -> None:
    _, part = await Bench().put("CREATE DATABASE IF NOT EXISTS s")
    assert part.saved is not None
    item, _ = await Bench(saved=part.saved).put("ALTER DATABASE s CHARACTER SET latin1")
    assert item.version == 2

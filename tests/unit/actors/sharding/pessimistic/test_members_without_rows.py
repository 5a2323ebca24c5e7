"""Whether a created member may have had rows (`MemberState.had_rows`), and how this is saved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import GroupSaved, TargetSegment, WriterMessage
from actors.saved.lock_state import ShardStatement, dump_group, load_group
from actors.sharding.pessimistic.group import PessimisticGroup
from actors.sharding.pessimistic.members_without_rows import creates_without_rows
from actors.sharding.pessimistic.waiting_parents import WaitingParents
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind, effects_of
from replicator.schema.registry.registry import SchemaRegistry, guess
from replicator.sharding.items import GroupState, MemberState, Template
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary
from tests.support.streams.row_columns import row_events
from tests.unit.actors.sharding.pessimistic.test_group import SHARD, TARGET, tools_of

EMPTY = MemberState(0, Place(1, 0), had_rows=False)
TABLE_MAP = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())


def test_a_state_of_an_older_release_may_have_had_rows() -> None:
    text = dump_group(GroupState(0, ((SHARD, EMPTY),)))
    assert load_group(text).members == ((SHARD, EMPTY),)
    older = text.replace(',"had_rows":false', "")
    assert older != text
    assert load_group(older).members == ((SHARD, replace(EMPTY, had_rows=True)),)


def test_a_member_takes_it_along_to_another_name_and_gives_it_to_no_other() -> None:
    state = GroupState(0, (("a1", EMPTY),))
    group: Group[str, None] = Group("a", "t", state, boundary(1), 0, [])
    group.join("a2", Place(2, 0), Template(0, "a1"))
    group.rename("a1", "a3", Place(3, 0))
    assert {name: state.had_rows for name, state in group.members.items()} == {
        "a2": True,
        "a3": False,
    }


@pytest.mark.parametrize("copied", [False, True])
async def test_the_first_rows_are_saved_even_if_the_copy_has_written_them(copied: bool) -> None:
    registry = SchemaRegistry()
    number = registry.join(Member("a", SHARD), TARGET)
    if copied:
        registry.copied(number, 20)
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, ((SHARD, EMPTY),)), boundary(2))
    writer: Mailbox[WriterMessage] = Mailbox(10)
    tools, target = tools_of(registry, writer), registry.target(TARGET)
    parents = WaitingParents(registry, {})
    actor = PessimisticGroup("a", target, group, lock, None, tools, parents)
    saved: list[GroupSaved | None] = []
    for segment, rows in enumerate((None, row_events([(number, TABLE_MAP)], [5], [1]))):
        for again in (False, True):
            await actor.on_message(TargetSegment("a", 0, 2 * segment + again, target, rows))
            part = await writer.get()
            assert isinstance(part, TargetSegment)
            assert (part.rows is not None) is (rows is not None and not copied)
            saved.append(part.saved)
    now = GroupState(0, ((SHARD, replace(EMPTY, had_rows=True)),))
    assert saved == [None, None, GroupSaved(((number, 0),), now), None]


def _effect(sql: str) -> Effect:
    [effect] = effects_of(classify(sql, default_schema="s"), lambda _: TARGET, [])
    return effect


CREATE = _effect("CREATE TABLE t1 (id INT)")
IF_MISSING = _effect("CREATE TABLE IF NOT EXISTS t1 (id INT)")


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (CREATE, True),
        (IF_MISSING, True),
        (replace(CREATE, instead=()), False),
        (replace(CREATE, created=CREATE.statement), False),
        (replace(CREATE, kind=EffectKind.MOVE_IN), False),
    ],
)
def test_a_statement_creates_a_table_without_rows(effect: Effect, expected: bool) -> None:
    """Rows come along with a table that moves, or by the operator's hand."""
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, ()), boundary(1))
    assert creates_without_rows(effect, Place(5, 0), group, SchemaRegistry()) is expected


@pytest.mark.parametrize("known", ["as a member", "by its structure"])
def test_a_table_that_is_there_is_not_created_if_it_is_missing(known: str) -> None:
    registry = SchemaRegistry()
    number = registry.join(Member("a", SHARD), TARGET)
    registry.learn(number, 3, guess(None, "it was declared"))
    members = ((SHARD, MemberState(0, Place(0, 0))),) if known == "as a member" else ()
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, members), boundary(1))
    at = Place(5, 0)
    assert not creates_without_rows(IF_MISSING, at, group, registry)
    assert creates_without_rows(CREATE, at, group, registry)

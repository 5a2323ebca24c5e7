"""When members may move to other targets, and what their saved state is then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.errors.faults import FatalError
from actors.saved.lock_state import ShardStatement, dump_group, first_groups, load_group, record_of
from actors.task.startup.changed_task import Move, moved, refuse_missed, refuse_unfinished
from replicator.binlog.segments.segment import Statement
from replicator.downstream.meta.checkpoint import Checkpoint
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.registry.registry import UNSEEN, MemberRecord
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution
from replicator.watermark import Place, Watermark

T, U = TableName("s", "t"), TableName("s", "u")
ONE, TWO = TableName("s", "t1"), TableName("s", "t2")


def record(name: TableName) -> MemberRecord:
    return MemberRecord(Member("a", name), T, 1, 50, UNSEEN)


def state(*members: TableName, base: int) -> str:
    saved = MemberState(base, Place(50, 0))
    return dump_group(GroupState(base, tuple((name, saved) for name in members)))


SAVED = Checkpoint(
    source="a",
    file="binlog.000001",
    offset=100,
    gtid="",
    server=ServerIdentity(1, ""),
    members=(record(ONE), record(TWO)),
    low_watermarks=((T, Watermark(1, 80, 1)),),
    groups=((T, state(ONE, TWO, base=1)), (U, state(base=3))),
    shard_mode="pessimistic",
    high_watermarks=((T, Watermark(1, 80, 1)),),
)
DECIDED = DecisionRecord(T, 1, "ALTER", Member("a", ONE), 50, "", done=True)
MOVE = Move(record(TWO), U)


def test_tables_may_move_while_nothing_is_open() -> None:
    refuse_unfinished(SAVED, "routes", [str(MOVE)], [DECIDED])


@pytest.mark.parametrize(
    ("saved", "decided", "reason"),
    [
        (replace(SAVED, open_items=2), [], "2 schema changes"),
        (SAVED, [replace(DECIDED, version=2)], "has not reached the newest"),
        (SAVED, [replace(DECIDED, version=2, done=False)], "has not reached the newest"),
        (
            replace(SAVED, high_watermarks=((T, Watermark(1, 90, 1)),)),
            [DECIDED],
            "did not end in order",
        ),
        (
            replace(
                SAVED,
                low_watermarks=((T, Watermark(1, (1 << 40) + 500, 1)),),
                high_watermarks=((T, Watermark(1, (1 << 40) + 500, 1)),),
            ),
            [DECIDED],
            "rows of s.t that are applied will be read again",
        ),
    ],
)
def test_what_is_open_is_the_reason_for_a_refusal(
    saved: Checkpoint, decided: list[DecisionRecord], reason: str
) -> None:
    with pytest.raises(FatalError, match=reason) as caught:
        refuse_unfinished(saved, "routes", [str(MOVE)], decided)
    assert "s.t2 went to s.t, now to s.u" in caught.value.message
    refuse_unfinished(saved, "routes", [], decided)


def test_a_member_takes_the_version_of_its_new_target() -> None:
    after = moved(SAVED, [MOVE])
    assert {m.member.name: (m.target, m.version) for m in after.members} == {
        ONE: (T, 1),
        TWO: (U, 3),
    }
    states = {name: load_group(text) for name, text in after.groups}
    assert [name for name, _ in states[T].members] == [ONE]
    assert states[U].members == ((TWO, MemberState(3, Place(50, 0))),)


def test_a_member_is_no_longer_replicated() -> None:
    after = moved(SAVED, [Move(record(TWO), None)])
    assert [m.member.name for m in after.members] == [ONE]
    assert [name for name, _ in load_group(after.groups[0][1]).members] == [ONE]


def resolved(version: int, *sources: str, done: bool = True) -> DecisionRecord:
    event = ShardStatement(Statement("s", "ALTER", 50 + version, 0))
    item = Item("alter", ("ALTER",), ONE, Place(50 + version, 0), event)
    cutovers = {source: Cutover(version, item.at) for source in sources}
    resolution = Resolution(version, sources[0], item, ResolvedItem(item.text), cutovers)
    return replace(record_of(T, resolution), done=done)


@pytest.mark.parametrize("done", [True, False])
def test_a_source_that_was_away_when_a_change_was_decided(done: bool) -> None:
    decided = [resolved(1, "a", "b"), resolved(2, "b", done=done)]
    with pytest.raises(FatalError, match="number 2 while source a") as caught:
        refuse_missed("a", SAVED, decided)
    assert caught.value.event == "source.missed-ddl"


@pytest.mark.parametrize(
    "decided",
    [
        [],
        [resolved(1, "b")],
        [resolved(1, "a", "b"), resolved(2, "a", "b", done=False)],
    ],
)
def test_a_source_that_was_there_at_each_change_since(decided: list[DecisionRecord]) -> None:
    refuse_missed("a", SAVED, decided)


def test_a_source_is_not_added_between_a_decision_and_its_execution() -> None:
    with pytest.raises(FatalError, match="number 2 while source c") as caught:
        refuse_missed("c", None, [resolved(1, "a"), resolved(2, "a", done=False)])
    assert caught.value.event == "source.missed-ddl"
    refuse_missed("c", None, [resolved(1, "a"), resolved(2, "a")])


def test_the_groups_of_a_new_source_start_at_the_versions_of_their_targets() -> None:
    groups = first_groups([resolved(1, "a"), resolved(2, "a")], [(TWO, T), (ONE, T), (TWO, U)])
    assert {target: group.base for target, group in groups.items()} == {T: 2, U: 0}
    assert [name for name, _ in groups[T].members] == [ONE, TWO]
    assert {member.version for _, member in groups[T].members} == {2}


@pytest.mark.parametrize(("start", "base"), [(40, 0), (52, 1), (60, 2)])
def test_the_groups_of_a_source_without_a_checkpoint_pass_their_cutovers_again(
    start: int, base: int
) -> None:
    decided = [resolved(1, "a", "b"), resolved(2, "a", "b")]
    assert first_groups(decided, [(ONE, T)], "b", start)[T].base == base
    assert first_groups(decided, [(ONE, T)], "c", start)[T].base == 2

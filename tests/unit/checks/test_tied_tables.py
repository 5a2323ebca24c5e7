"""Which targets foreign keys tie, and what keeps them from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.checks.schema.tied_tables import (
    KeyedShard,
    TargetKeys,
    find_ties,
    meeting_values,
    obstacle_of_new,
)
from replicator.ddl.analysis.foreign_keys import ForeignKey
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.routing.columns.member_columns import (
    AS_THEY_ARE,
    ExtractedColumn,
    MemberColumns,
)

P, C, G, X = (TableName("m", name) for name in "pcgx")
ID = (frozenset({"id"}),)


def key(parent: TableName, on_delete: str = "CASCADE") -> ForeignKey:
    return ForeignKey(("p",), parent, ("id",), on_delete, "RESTRICT")


def shard(name: str, *parents: TableName, action: str = "CASCADE") -> KeyedShard:
    keys = tuple((key(TableName("s", f"{of.table}_1"), action), of) for of in parents)
    return KeyedShard(Member("a", TableName("s", name)), keys, True, AS_THEY_ARE, False, False)


SHARDS = {P: [shard("p_1")], C: [shard("c_1", P)], X: [shard("x_1")]}
TARGETS = {
    P: TargetKeys(frozenset(), ID),
    C: TargetKeys(frozenset({key(P)}), ID),
    X: TargetKeys(frozenset(), ID),
}


def test_parent_and_child_are_tied_and_no_others() -> None:
    ties = find_ties(SHARDS, TARGETS, holds_rows=False)
    assert ties.referenced == {P: frozenset({"id"}), C: frozenset()}
    assert not ties.obstacles


def test_keys_without_an_action_tie_what_they_connect_with_it() -> None:
    shards = {**SHARDS, G: [shard("g_1", C, action="RESTRICT")]}
    targets = {**TARGETS, G: TargetKeys(frozenset({key(C, "RESTRICT")}), ID)}
    assert find_ties(shards, targets, holds_rows=False).referenced.keys() == {P, C, G}
    only_plain = {P: SHARDS[P], C: [shard("c_1", P, action="RESTRICT")]}
    assert not find_ties(only_plain, targets, holds_rows=False).referenced


def mapped(found: KeyedShard, column: str, upper: int) -> KeyedShard:
    return replace(found, rules=MemberColumns(mapped=MappedColumn(column, upper)))


def extracted(found: KeyedShard, value: str) -> KeyedShard:
    return replace(found, rules=MemberColumns((ExtractedColumn("Src", value),)))


@pytest.mark.parametrize(
    "unfit",
    [
        replace(shard("c_1", P), has_key=False),
        replace(shard("c_1", P), filtered=True),
        mapped(shard("c_1", P), "P", 1 << 51),
    ],
)
def test_a_shard_that_does_not_suit(unfit: KeyedShard) -> None:
    shards = {**SHARDS, C: [unfit]}
    ties = find_ties(shards, TARGETS, holds_rows=False)
    assert ties.obstacles.keys() == {C}
    assert not ties.referenced


@pytest.mark.parametrize(
    ("unfit", "reason"),
    [
        (shard("c_1"), "lacks"),
        (shard("c_1", P, action="SET NULL"), "lacks"),
        (replace(shard("c_1", P), has_key=False), "no primary key"),
        (replace(shard("c_1", P), filtered=True), "leave out rows"),
        (mapped(shard("c_1", P), "P", 1 << 51), "maps p of"),
    ],
)
def test_a_new_shard_that_does_not_suit(unfit: KeyedShard, reason: str) -> None:
    assert obstacle_of_new(C, shard("c_1", P), [shard("p_1")], TARGETS) == ""
    found = obstacle_of_new(C, unfit, [shard("p_1")], TARGETS)
    assert reason in found or "foreign key that its shards lack" in found


def test_a_new_shard_whose_keys_no_unique_key_of_its_target_has() -> None:
    assert obstacle_of_new(P, shard("p_2"), [], TARGETS) == ""
    targets = {**TARGETS, P: TargetKeys(frozenset(), (frozenset({"id", "of"}),))}
    assert "no unique key of m.p" in obstacle_of_new(P, shard("p_2"), [], targets)


def test_what_logs_its_changes_needs_no_ties() -> None:
    shards = {**SHARDS, C: [replace(shard("c_1", P), logs=True)]}
    ties = find_ties(shards, TARGETS, holds_rows=False)
    assert not ties.referenced
    assert not ties.obstacles


def test_shards_or_a_target_with_other_keys() -> None:
    unlike = {**SHARDS, C: [shard("c_1", P), shard("c_2", P, action="SET NULL")]}
    assert "other foreign keys" in find_ties(unlike, TARGETS, holds_rows=False).obstacles[C][0]
    lacking = {**TARGETS, C: TargetKeys(frozenset(), ID)}
    obstacle, way_out, in_task_file = find_ties(SHARDS, lacking, holds_rows=False).obstacles[C]
    assert "lacks" in obstacle
    assert way_out.startswith("ALTER TABLE `m`.`c` ADD FOREIGN KEY (`p`) REFERENCES `m`.`p`")
    assert not in_task_file
    more = {**TARGETS, P: TargetKeys(frozenset({key(X)}), ID)}
    assert "its shards lack" in find_ties(SHARDS, more, holds_rows=False).obstacles[P][0]
    missing = {P: TARGETS[P]}
    assert "does not exist" in find_ties(SHARDS, missing, holds_rows=False).obstacles[C][0]
    optimistic = find_ties(SHARDS, TARGETS, holds_rows=True)
    assert optimistic.obstacles.keys() == {P, C}
    assert "shard-mode optimistic" in optimistic.obstacles[C][0]


def test_connected_shards_have_one_table_of_each_target() -> None:
    second = shard("p_2"), replace(shard("c_2", P), keys=((key(TableName("s", "p_2")), P),))
    shards = {**SHARDS, P: [*SHARDS[P], second[0]], C: [*SHARDS[C], second[1]]}
    ties = find_ties(shards, TARGETS, holds_rows=True, connects=True)
    assert ties.families == (frozenset({P, C}),)
    names = {member.name.table: text for member, text in ties.connected.items()}
    assert names["p_1"] == names["c_1"] != names["p_2"] == names["c_2"]
    twice = {**SHARDS, C: [*SHARDS[C], shard("c_2", P)]}
    found = find_ties(twice, TARGETS, holds_rows=True, connects=True).obstacles[C][0]
    assert "connect a: s.c_1 with a: s.c_2" in found
    assert not find_ties(twice, TARGETS, holds_rows=False).obstacles
    childless = {**SHARDS, P: [*SHARDS[P], shard("p_2")]}
    found = find_ties(childless, TARGETS, holds_rows=True, connects=True).obstacles[C][0]
    assert "a: s.p_2 with no shard of m.c" in found
    # A task that runs may lose a shard: locks wait for what is left of it.
    later = find_ties(childless, TARGETS, holds_rows=True, connects=True, complete=False)
    assert not later.obstacles


def test_keys_that_are_mapped_alike_are_apart() -> None:
    shards = {
        P: [mapped(shard("p_1"), "ID", 1 << 51), mapped(shard("p_2"), "id", 2 << 51)],
        C: [mapped(shard("c_1", P), "P", 1 << 51)],
    }
    ties = find_ties(shards, TARGETS, holds_rows=False)
    assert ties.referenced == {P: frozenset({"id"}), C: frozenset()}
    assert not meeting_values(ties, TARGETS, shards, keeps_duplicates=True)
    [one, two] = shards[P]
    same = {**shards, P: [one, replace(two, rules=one.rules)]}
    assert C in meeting_values(ties, TARGETS, same, keeps_duplicates=True)
    otherwise = {**shards, C: [mapped(shard("c_1", P), "p", 2 << 51)]}
    obstacle, _, in_task_file = find_ties(otherwise, TARGETS, holds_rows=False).obstacles[C]
    assert "maps p of a: s.c_1 otherwise than the id of a: s.p_1" in obstacle
    assert in_task_file


def test_extracted_columns_in_a_key_of_the_target_keep_shards_apart() -> None:
    shards = {
        P: [extracted(shard("p_1"), "1"), extracted(shard("p_2"), "2")],
        C: [extracted(shard("c_1", P), "1")],
    }
    wider = ForeignKey(("p", "src"), P, ("id", "src"), "CASCADE", "RESTRICT")
    targets = {
        P: TargetKeys(frozenset(), (frozenset({"id", "src"}),)),
        C: TargetKeys(frozenset({wider}), ID),
    }
    ties = find_ties(shards, targets, holds_rows=False)
    assert ties.referenced == {P: frozenset({"id", "src"}), C: frozenset()}
    assert not meeting_values(ties, targets, shards, keeps_duplicates=True)
    # Without the column, a row of one shard would take those of the other along.
    narrow = {**targets, C: TARGETS[C]}
    assert C in meeting_values(ties, narrow, shards, keeps_duplicates=False)
    other = {**shards, C: [extracted(shard("c_1", P), "2")]}
    assert "lacks" in find_ties(other, targets, holds_rows=False).obstacles[C][0]
    nulls = {**targets, C: TargetKeys(frozenset({replace(wider, on_delete="SET NULL")}), ID)}
    unset = {**shards, C: [extracted(shard("c_1", P, action="SET NULL"), "1")]}
    assert "lacks" in find_ties(unset, nulls, holds_rows=False).obstacles[C][0]


def test_a_parent_that_is_not_replicated() -> None:
    keys = ((key(TableName("s", "else")), None),)
    shards = {C: [replace(shard("c_1"), keys=keys)]}
    assert "not replicated" in find_ties(shards, TARGETS, holds_rows=False).obstacles[C][0]


def test_where_values_of_shards_could_meet() -> None:
    two = {**SHARDS, P: [shard("p_1"), shard("p_2")]}
    ties = find_ties(two, TARGETS, holds_rows=False)
    assert not meeting_values(ties, TARGETS, two, keeps_duplicates=False)
    assert C in meeting_values(ties, TARGETS, two, keeps_duplicates=True)
    plain = {**TARGETS, P: TargetKeys(frozenset(), ())}
    assert C in meeting_values(ties, plain, two, keeps_duplicates=False)
    assert not meeting_values(ties, plain, SHARDS, keeps_duplicates=True)

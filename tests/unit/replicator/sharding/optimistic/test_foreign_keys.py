"""Which foreign keys a target gets and loses, by those of its members."""

from __future__ import annotations

from dataclasses import replace

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.schema.structure.foreign_keys import with_keys
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.foreign_keys import agreed_keys, key_actions
from replicator.sharding.optimistic.shard_states import ShardState
from tests.simulation.optimistic_estate import table
from tests.support.optimistic_answers import B

FIRST = ForeignKeyDefinition("f", ("b",), "h", "p", ("id",))
SECOND = ForeignKeyDefinition("t_ibfk_1", ("b",), "h", "p", ("id",), on_delete="CASCADE")


def shard(*keys: ForeignKeyDefinition) -> Table:
    return with_keys(table((B,)), keys)


def actions(target: Table, former: list[Table], members: list[Table]) -> list[str]:
    before = agreed_keys(map(ShardState, former), ())
    wanted = agreed_keys(map(ShardState, members), before)
    keys = [one.definition.foreign_keys for one in members]
    return [*key_actions(target, wanted.keys(), wanted, keys).values()]


def test_a_key_comes_with_the_last_member() -> None:
    assert actions(shard(), [shard(), shard()], [shard(FIRST), shard()]) == []
    [action] = actions(shard(), [shard(FIRST), shard()], [shard(FIRST), shard(FIRST)])
    assert action == "ADD CONSTRAINT `f` FOREIGN KEY (`b`) REFERENCES `h`.`p` (`id`)"


def test_a_key_goes_with_the_last_member() -> None:
    both = [shard(FIRST), shard(FIRST)]
    assert actions(shard(FIRST), both, [shard(FIRST), shard()]) == []
    assert actions(shard(FIRST), both, [shard(), shard()]) == ["DROP FOREIGN KEY `f`"]


def test_a_name_that_a_server_has_made_is_left_to_the_server() -> None:
    [action] = actions(shard(), [shard()], [shard(SECOND)])
    assert action == "ADD FOREIGN KEY (`b`) REFERENCES `h`.`p` (`id`) ON DELETE CASCADE"


def test_a_key_of_other_actions_takes_the_place_of_one() -> None:
    found = actions(shard(FIRST), [shard(FIRST)], [shard(SECOND)])
    assert [action.partition(" ")[0] for action in found] == ["DROP", "ADD"]


def test_a_key_with_another_parent_takes_the_place_of_one() -> None:
    other = replace(FIRST, name="g", parent="q")
    assert actions(shard(FIRST), [shard(FIRST)], [shard(FIRST), shard(other)]) == []
    [action] = actions(shard(FIRST), [shard(FIRST)], [shard(other), shard(other)])
    added = "ADD CONSTRAINT `g` FOREIGN KEY (`b`) REFERENCES `h`.`q` (`id`)"
    assert action == f"DROP FOREIGN KEY `f`, {added}"


def test_nothing_is_agreed_while_a_structure_is_unknown() -> None:
    assert agreed_keys([ShardState(shard(FIRST)), ShardState(None)], ()) == {}

"""What a reader leaves out while a target waits to be renamed, and what goes on."""

from __future__ import annotations

import pytest

from actors.reading.moving_tables import MovingTables
from actors.sharding.moved_shards import WAITING, MovedShards
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.meta.moved_shards import (
    AppliedUntil,
    MovedShard,
    Renaming,
    TableLife,
)
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind, effects_of, one_by_one
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import Place
from tests.support.streams.row_columns import row_events

MAP = TableMap("s", "t", (3,), (0,), (False,), OptionalMetadata())
X, Y, Z = (TableName("m", name) for name in "xyz")


def route(name: TableName) -> TableName | None:
    """Tables `x1`, `x2` … of schema s go to m.x."""
    return TableName("m", name.table[:1]) if name.schema == "s" else None


def shard(name: str, source: str = "a") -> Member:
    return Member(source, TableName("s", name))


class Bench:
    """A reading of a source with the shards x1, x2 and z1; no target y is there."""

    def __init__(self, *renamings: Renaming, family: tuple[str, ...] = ()) -> None:
        """`family`: tables that foreign keys with actions connect."""
        self.registry = SchemaRegistry()
        self.shards = MovedShards(renamings)
        self.held: set[TableName] = set()
        self.members = {TableName("s", name) for name in ("x1", "x2", "z1")}
        for name in self.members:
            target = route(name)
            assert target is not None
            self.registry.join(Member("a", name), target)
        own = {TableName("s", name) for name in family}
        self.moving = MovingTables(
            "a",
            0,
            self.registry,
            self.shards,
            self.held.__contains__,
            route,
            lambda name: own - {name} if name in own else frozenset(),
        )

    def read(self, sql: str, place: int) -> list[tuple[EffectKind, str, bool]]:
        """The effects that happen: kind, table, whether nothing is executed."""
        effects = effects_of(classify(sql, default_schema="s"), route, self.members)
        statement = Statement("s", sql, place, 7)
        waves = one_by_one(self.moving.answered(effects, statement))
        return [_shown(e) for wave in waves for e in self.moving.kept(wave, statement)]

    def waiting(self, *names: str) -> set[str]:
        """Those of these names that wait."""
        return {name for name in names if self.moving.waits(TableName("s", name))}


def _shown(effect: Effect) -> tuple[EffectKind, str, bool]:
    return effect.kind, effect.table.table, effect.skipped


def test_a_shard_that_leaves_first_waits_under_both_names() -> None:
    bench = Bench()
    assert bench.read("RENAME TABLE x1 TO y1", 5) == [(EffectKind.MOVE_OUT, "x1", True)]
    assert bench.waiting("x1", "y1", "x2") == {"x1", "y1"}
    assert bench.shards.places("a") == [Place(5, 0)]
    assert bench.read("ALTER TABLE y1 ADD c INT", 6) == []
    assert bench.read("CREATE TABLE x1 (a INT)", 7) == []
    assert bench.read("RENAME TABLE y1 TO y5", 8) == []
    assert bench.waiting("x1", "y1", "y5") == {"x1", "y1", "y5"}
    assert bench.read("ALTER TABLE x2 ADD c INT", 9) == [(EffectKind.ALTER, "x2", False)]
    assert bench.shards.lives() == (
        TableLife(shard("x1"), 5, WAITING),
        TableLife(shard("y1"), 5, WAITING),
        TableLife(shard("y5"), 8, WAITING),
    )


def test_what_depends_on_a_shard_that_waits_waits_too() -> None:
    """Other shards of its target get ahead of the rows that are read later: it is touched."""
    bench = Bench()
    bench.read("RENAME TABLE x1 TO y1", 5)
    assert bench.read("CREATE TABLE z2 LIKE y1", 6) == []
    assert bench.shards.touched == {Z}
    bench.read("ALTER TABLE w1 ADD FOREIGN KEY (a) REFERENCES y1 (a)", 7)
    bench.read("RENAME TABLE y1 TO v1", 8)
    assert bench.shards.touched == {Y, Z, TableName("m", "w"), TableName("m", "v")}
    assert bench.waiting("z2", "w1", "v1", "z1") == {"z2", "w1", "v1"}


def test_a_created_table_does_not_take_the_name_that_a_target_is_about_to_get() -> None:
    bench = Bench()
    assert bench.read("CREATE TABLE v2 (a INT)", 4) == [(EffectKind.CREATE, "v2", False)]
    bench.read("RENAME TABLE x1 TO y1", 5)
    assert bench.read("CREATE TABLE y2 (a INT)", 6) == []
    assert bench.read("ALTER TABLE y2 ADD c INT", 7) == []
    assert bench.read("CREATE TABLE v3 (a INT)", 8) == [(EffectKind.CREATE, "v3", False)]
    bench.read("RENAME TABLE x2 TO z2", 9)
    assert bench.read("CREATE TABLE z3 (a INT)", 10) == [(EffectKind.CREATE, "z3", False)]
    assert bench.waiting("x1", "y1", "y2", "z2", "z3") == {"x1", "y1", "y2", "z2"}


def test_nor_the_name_that_it_gets_by_a_later_statement() -> None:
    bench = Bench()
    bench.read("RENAME TABLE x1 TO y1", 5)
    bench.read("RENAME TABLE y1 TO v1", 6)
    assert bench.read("CREATE TABLE v2 (a INT)", 7) == []
    assert bench.waiting("v1", "v2") == {"v1", "v2"}


def test_a_table_that_has_joined_its_target_does_not_wait_when_it_is_read_again() -> None:
    """Since then other shards have left, or another target is about to get the name."""
    bench, again = Bench(), Bench()
    assert bench.read("CREATE TABLE y2 (a INT)", 4) == [(EffectKind.CREATE, "y2", False)]
    again.shards = again.moving._shards = bench.shards
    bench.shards.restart("a")
    assert again.read("RENAME TABLE x1 TO y1", 3) == [(EffectKind.MOVE_OUT, "x1", True)]
    assert again.read("CREATE TABLE y2 (a INT)", 4) == [(EffectKind.CREATE, "y2", False)]
    assert again.read("CREATE TABLE y3 (a INT)", 6) == []
    assert again.waiting("y1", "y2", "y3") == {"y1", "y3"}


def test_another_shard_of_the_target_may_take_the_former_name() -> None:
    bench = Bench()
    bench.read("RENAME TABLE x1 TO y1", 5)
    assert bench.read("RENAME TABLE x2 TO x1", 6) == [(EffectKind.RENAME, "x2", False)]
    assert bench.waiting("x1", "x2", "y1") == {"y1"}
    assert bench.shards.lives()[-1] == TableLife(shard("x1"), 6, 0)


def test_in_one_statement_too() -> None:
    bench = Bench()
    bench.read("RENAME TABLE x1 TO y1, x2 TO x1", 5)
    assert bench.waiting("x1", "x2", "y1") == {"y1"}


def _moved(number: int, *shards: MovedShard) -> Renaming:
    until = tuple(AppliedUntil(s.member.source, s.former, s.place) for s in shards)
    names = [(s.member, s.place) for s in shards]
    return Renaming(number, shards, until, tuple(TableLife(m, at, number) for m, at in names))


def test_when_the_target_has_moved_the_rename_is_like_one_that_the_operator_answers_for() -> None:
    bench = Bench(_moved(1, MovedShard(shard("x1"), 5, X, Y)))
    assert bench.read("RENAME TABLE x1 TO y1", 5) == [
        (EffectKind.MOVE_OUT, "x1", True),
        (EffectKind.MOVE_IN, "y1", True),
    ]
    assert bench.shards.places("a") == []
    assert bench.waiting("x1", "y1") == set()
    # The next table of that name moves for itself.
    assert bench.read("RENAME TABLE x1 TO w1", 9) == [(EffectKind.MOVE_OUT, "x1", True)]


def test_a_source_that_is_read_again_waits_for_nothing_yet() -> None:
    bench = Bench()
    bench.read("RENAME TABLE x1 TO y1", 5)
    bench.shards.restart("a")
    assert bench.shards.waiting == []
    assert bench.shards.lives() == ()


def test_a_table_is_created_again_in_a_target_that_others_left_and_came_to() -> None:
    """Read again, nothing waits yet, and the target has no shards yet: the table would wait for a
    renaming that waits for it."""
    bench = Bench()
    bench.read("RENAME TABLE x1 TO tmp, z1 TO x1, tmp TO z1", 5)
    bench.shards.restart("a")
    bench.registry, bench.members = SchemaRegistry(), set()
    bench.moving = MovingTables(
        "a",
        1,
        bench.registry,
        bench.shards,
        bench.held.__contains__,
        route,
        lambda _: frozenset(),
    )
    assert bench.read("CREATE TABLE z2 (a INT)", 3) == [(EffectKind.CREATE, "z2", False)]


def test_no_shard_of_a_statement_waits_where_one_of_them_can_not() -> None:
    bench = Bench()
    bench.held.add(Y)
    assert bench.read("RENAME TABLE x1 TO y1, x2 TO w2", 5) == [
        (EffectKind.MOVE_OUT, "x1", False),
        (EffectKind.MOVE_OUT, "x2", False),
        (EffectKind.MOVE_IN, "y1", False),
        (EffectKind.MOVE_IN, "w2", False),
    ]
    assert bench.shards.waiting == []


@pytest.mark.parametrize("held", [X, Y, Z])
def test_a_target_that_is_held_does_not_follow_nor_one_of_its_family(held: TableName) -> None:
    bench = Bench(family=("x1", "z1"))
    bench.held.add(held)
    bench.read("RENAME TABLE x1 TO y1", 5)
    assert bench.shards.waiting == []
    assert not bench.moving.any_waits


def test_tables_that_foreign_keys_connect_wait_together() -> None:
    bench = Bench(family=("x1", "z1", "x2"))
    assert bench.read("RENAME TABLE x1 TO y1, x2 TO y2", 5) == [
        (EffectKind.MOVE_OUT, "x1", True),
        (EffectKind.MOVE_OUT, "x2", True),
    ]
    assert bench.waiting("x1", "x2", "y1", "y2", "z1") == {"x1", "x2", "y1", "y2", "z1"}
    assert bench.shards.touched == {Z}
    # It is renamed when the others are.
    assert bench.read("RENAME TABLE z1 TO w1", 6) == []
    assert {w.move.former for w in bench.shards.waiting} == {X}


def test_targets_that_change_places_wait_together() -> None:
    bench = Bench()
    sql = "RENAME TABLE x1 TO tmp, z1 TO x1, tmp TO z1"
    assert sorted(bench.read(sql, 5)) == [
        (EffectKind.MOVE_OUT, "x1", True),
        (EffectKind.MOVE_OUT, "z1", True),
    ]
    assert {(w.move.former, w.move.target) for w in bench.shards.waiting} == {(X, Z), (Z, X)}
    assert bench.waiting("x1", "z1", "tmp") == {"x1", "z1"}


def test_a_table_that_takes_the_place_of_one_that_waits_is_read_after_it() -> None:
    bench = Bench()
    bench.read("RENAME TABLE x1 TO y1", 5)
    assert bench.read("RENAME TABLE z1 TO x1", 6) == []
    assert bench.waiting("z1", "x1") == {"z1", "x1"}
    assert bench.shards.touched == {X, Z}
    assert [w.move.former for w in bench.shards.waiting] == [X]


def test_rows_that_the_target_had_when_it_was_renamed_are_left_out() -> None:
    renamings = [
        Renaming(
            1,
            (MovedShard(shard("x1"), 10, X, Y), MovedShard(shard("x2"), 20, X, Y)),
            (AppliedUntil("a", X, 20),),
            (TableLife(shard("x1"), 10, 1), TableLife(shard("y1"), 10, 1)),
        )
    ]
    bench = Bench(*renamings)
    y1 = bench.registry.join(shard("y1"), Y)
    x1, x2 = (bench.registry.join(shard(name), X) for name in ("x1", "x2"))
    z1 = bench.registry.join(shard("z1"), Z)

    def left(member: int, *transactions: int, version: int = 0) -> list[int]:
        """The transactions of those row events, each read after one statement, that are left."""
        found: list[int] = []
        target = bench.registry.target_name(bench.registry.target_of(member))
        for at in transactions:
            rows = row_events([(member, MAP)], [at], [1])
            kept = bench.shards.left(rows, target, version, bench.registry.member)
            found += [] if kept is None else kept.transaction.tolist()
        return found

    # The second shard was still one of the former target when the first had a new table.
    assert left(x1, 5, 12, 25) == [12, 25]
    assert left(x2, 5, 12, 25) == [25]
    assert left(y1, 12) == [12]
    assert left(z1, 5) == [5]
    # Rows of a later version were held.
    assert left(x2, 5, 25, version=1) == [5, 25]


def test_a_table_that_is_created_after_the_rename_is_another_one() -> None:
    shards = MovedShards(
        [
            _moved(
                1, MovedShard(shard("x1"), 10, X, Y, 3), MovedShard(shard("x1", "b"), 50, X, Y, 3)
            ),
            _moved(2, MovedShard(shard("x1"), 90, X, Z, 4)),
        ]
    )
    assert [shards.floor(X, shard("x1"), place) for place in (5, 10, 60, 95)] == [0, 3, 3, 4]
    # What the second renaming ended is another target than that of the former table of "b".
    assert [shards.floor(X, shard("x1", "b"), place) for place in (10, 50)] == [0, 4]
    assert shards.floor(Y, shard("x1"), 95) == 0


def test_the_version_at_which_the_target_of_a_table_was_renamed() -> None:
    shards = MovedShards(
        [
            _moved(1, MovedShard(shard("x1"), 10, X, Y, 3)),
            _moved(2, MovedShard(shard("x1"), 20, X, Z, 4)),
        ]
    )
    assert [shards.end(X, shard("x1"), place) for place in (5, 10, 15, 20)] == [3, 4, 4, None]
    assert shards.end(X, shard("x1", "b"), 5) is None
    assert shards.end(Y, shard("x1"), 5) is None


@pytest.mark.parametrize(
    ("ties", "wanted"),
    [
        ([("a", X, Y), ("b", Y, X)], True),
        ([("a", X, Y), ("a", Y, Z), ("b", Z, X)], True),
        ([("a", X, Y), ("b", Y, Z)], False),
        ([("a", X, Y), ("c", Y, X)], False),
        ([("a", X, X)], False),
    ],
)
def test_renamings_that_wait_for_each_other_are_found(
    ties: list[tuple[str, TableName, TableName]], *, wanted: bool
) -> None:
    """Source c has no shard of the target any more."""
    shards = MovedShards()
    for tie in ties:
        shards.tie(*tie)
    assert shards.in_circle(X, {name: {"a", "b"} for name in (X, Y, Z)}) is wanted
    shards.restart("a")
    assert not shards.in_circle(X, {name: {"a", "b"} for name in (X, Y, Z)})

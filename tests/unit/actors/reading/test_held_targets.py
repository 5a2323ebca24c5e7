"""What a reading of a source holds: blocked targets, and what statements tie to them."""

from __future__ import annotations

import pytest

from actors.errors.faults import of_source, of_target
from actors.reading.held_targets import HeldTargets
from actors.reading.statement_reader import Step
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import effects_of
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import Place
from tests.support.streams.row_columns import row_events

X, Y, Z = (TableName("m", name) for name in "xyz")
TABLE_MAP = TableMap("s", "x1", (3,), (0,), (False,), OptionalMetadata())


def route(name: TableName) -> TableName | None:
    """Tables `x1`, `x2` … of schema s go to m.x."""
    return TableName("m", name.table[:1]) if name.schema == "s" else None


class Bench:
    """One reading with x blocked; members are x1, y1 and z1."""

    def __init__(self, *, drops_targets: bool = True) -> None:
        self.registry = SchemaRegistry()
        self.members = [TableName("s", f"{table}1") for table in "xyz"]
        self.numbers = {
            member: self.registry.join(Member("a", member), TableName("m", member.table[0]))
            for member in self.members
        }
        self.held = HeldTargets(self.registry, {X}, drops_targets=drops_targets)

    def rows(self, at: int, *targets: TableName, timestamp: int = 0) -> set[TableName]:
        """The targets that rows at a place pass to."""
        events = row_events([(0, TABLE_MAP)], [at], [1], [b""])
        given = {self.registry.target(name): events for name in targets}
        return {self.registry.target_name(n) for n in self.held.without_held_rows(given, timestamp)}

    def statement(self, at: int, sql: str) -> set[TableName]:
        """The targets that a statement's effects pass to."""
        found: dict[int, tuple[object, ...]] = {}
        for effect in effects_of(classify(sql, default_schema="s"), route, self.members):
            number = self.registry.target(effect.target)
            found[number] = (*found.get(number, ()), effect)
        step = Step(Statement("s", sql, at, 7), found)  # type: ignore[arg-type]
        kept = self.held.without_held_effects(step, route)
        return {self.registry.target_name(number) for number in kept.effects}


def test_rows_and_statements_of_a_blocked_target_are_held_from_the_first_on() -> None:
    bench = Bench()
    assert bench.rows(5, X, Y) == {Y}
    assert bench.statement(6, "ALTER TABLE x1 ADD c INT") == set()
    assert bench.statement(7, "ALTER TABLE y1 ADD c INT") == {Y}
    assert bench.rows(8, X) == set()
    assert list(bench.held.places) == [Place(5, 1)]
    assert (bench.held.rows_held(X), bench.held.rows_held(Y)) == (2, 0)


def test_nothing_is_held_before_anything_has_come() -> None:
    bench = Bench()
    assert bench.rows(5, Y, Z) == {Y, Z}
    assert not bench.held.places


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLE x1 TO y2",
        "RENAME TABLE y1 TO x2",
        "RENAME TABLE x1 TO y2, y1 TO x2",
        "CREATE TABLE y2 LIKE x1",
        "ALTER TABLE y1 ADD FOREIGN KEY (a) REFERENCES x1 (id)",
    ],
)
def test_a_statement_ties_a_target_to_a_held_one(sql: str) -> None:
    bench = Bench()
    assert bench.rows(5, Y) == {Y}
    assert bench.statement(6, sql) == set()
    assert bench.held.waits_for(Y) == X
    assert bench.rows(7, Y, Z) == {Z}
    assert bench.held.waits_for(Z) is None
    assert Place(6, 0) in bench.held.places


@pytest.mark.parametrize("sql", ["DROP TABLE x1, y1", "RENAME TABLE x1 TO x2, y1 TO y2"])
def test_a_statement_about_each_by_itself_ties_nothing(sql: str) -> None:
    bench = Bench()
    assert bench.statement(6, sql) == {Y}
    assert bench.rows(7, Y) == {Y}


def test_a_tie_is_one_to_what_is_tied_already() -> None:
    bench = Bench()
    assert bench.statement(6, "CREATE TABLE y2 LIKE x1") == set()
    assert bench.statement(7, "CREATE TABLE z2 LIKE y2") == set()
    assert bench.held.waits_for(Z) == Y


DROP = "DROP DATABASE s"


def test_a_dropped_database_takes_all_of_its_targets_along() -> None:
    bench = Bench()
    new = TableName("m", "n")
    database = TableName("m", "")

    def to_m(name: TableName) -> TableName | None:
        return database if not name.table else route(name)

    (*_, effect) = effects_of(classify(DROP, default_schema="s"), to_m, bench.members)
    step = Step(Statement("s", DROP, 6, 7), {bench.registry.target(database): (effect,)})
    assert not bench.held.without_held_effects(step, to_m).effects
    assert bench.rows(7, Y, new) == set()
    assert bench.held.waits_for(new) == X
    bench = Bench(drops_targets=False)
    step = Step(step.statement, {bench.registry.target(database): (effect,)})
    assert bench.held.without_held_effects(step, to_m).effects
    assert bench.rows(7, Y) == {Y}


def test_a_statement_with_a_fault_is_held_where_all_that_it_names_are() -> None:
    bench = Bench()
    statement = Statement("s", "ALTER TABLE x1 EXCHANGE …", 6, 7)
    assert not bench.held.holds_all(None, statement)
    assert not bench.held.holds_all(of_source("a"), statement)
    assert not bench.held.holds_all(of_target(X, Y), statement)
    assert not bench.held.places
    assert bench.held.holds_all(of_target(X), statement)
    assert list(bench.held.places) == [Place(6, 0)]


def test_the_oldest_held_row_is_known() -> None:
    bench = Bench()
    bench.rows(5, Y, timestamp=90)
    assert bench.held.oldest_row == 0
    bench.rows(6, X, Y, timestamp=100)
    bench.rows(7, X, timestamp=110)
    assert bench.held.oldest_row == 100

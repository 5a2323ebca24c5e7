"""What was learned once is what would be learned again, for each shard and on each server."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import astuple, replace

import pytest

from actors.schema import schema_tracker
from actors.schema.schema_tracker import SchemaTracker
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.session_context.sql_modes import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.ddl_effects import effects_of
from replicator.schema.registry.registry import KnownStructure, Provenance, SchemaRegistry
from replicator.schema.scratch.learned_structures import LearnedStructures, server_traits
from replicator.schema.scratch.scratch_table import ScratchTable
from replicator.schema.structure.inspection import read_table
from tests.integration.schema.test_scratch_table import ODD, STATEMENTS, address

PLAIN = "(id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(9) DEFAULT 'x', KEY (a))"


class Watched(Connection):
    """Counts what is learned on the server."""

    learned = 0

    async def execute(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> int:
        self.learned += sql.startswith(("ALTER", "CREATE"))
        return await super().execute(sql, args, patience=patience)


class Learner:
    """Learns what statements do to the shards `t_1` and `t_2` of a source, on a target."""

    def __init__(self, source: DatabaseServer, target: DatabaseServer, database: str) -> None:
        self.source = source
        self.database = database
        self.memory = LearnedStructures()
        self.connection = Watched(address(target))
        self.reading = Watched(address(target))
        name = TableName(f"{database}_meta", "scratch")
        self.scratch = ScratchTable(self.reading, name, self.connection)
        self._at = 10

    def tracker(self, memory: LearnedStructures) -> SchemaTracker:
        registry = SchemaRegistry()
        self.registry = registry
        return SchemaTracker(registry, self.scratch, memory)

    async def read(self, table: str) -> KnownStructure:
        with closing(Connection(address(self.source))) as connection:
            found = await read_table(connection, TableName(self.database, table))
        return KnownStructure(found, Provenance.READ)

    async def after(
        self,
        before: KnownStructure,
        table: str,
        sql: str,
        context: StatementContext = NO_CONTEXT,
        *,
        memory: LearnedStructures | None = None,
    ) -> KnownStructure:
        """The structure of a shard behind a statement that has ``{t}`` for its name."""
        tracker = self.tracker(self.memory if memory is None else memory)
        name, target = TableName(self.database, table), TableName("m", "t")
        number = self.registry.join(Member("a", name), target)
        self.registry.learn(number, 1, before)
        text = sql.format(t=table)
        parsed = classify(text, default_schema=self.database, ansi_quotes=context.ansi_quotes)
        [effect] = effects_of(parsed, lambda found: target if found.table else None, [name])
        self._at += 1
        statement = Statement(self.database, text, self._at, 0, context)
        return await tracker.learn("a", effect, statement)

    async def both_ways(
        self, before: KnownStructure, table: str, sql: str, context: StatementContext = NO_CONTEXT
    ) -> KnownStructure:
        """The structure from what is remembered, which is the one that is learned anew."""
        found = await self.after(before, table, sql, context)
        anew = await self.after(before, table, sql, context, memory=LearnedStructures())
        assert found == anew, sql
        if found.structure is not None and anew.structure is not None:
            # Columns are equal whatever they were learned from.
            assert astuple(found.structure) == astuple(anew.structure), sql
        return found


@pytest.fixture
async def learner(
    mariadb_source: DatabaseServer, target_server: DatabaseServer, database_name: str
) -> AsyncIterator[Learner]:
    target_server.execute(f"CREATE DATABASE {database_name}_meta")
    mariadb_source.execute(f"CREATE DATABASE {database_name}")
    found = Learner(mariadb_source, target_server, database_name)
    yield found
    await found.scratch.close()


def create(learner: Learner, columns: str) -> None:
    for table in ("t_1", "t_2"):
        learner.source.execute(f"CREATE TABLE {table} {columns}", database=learner.database)


def bare(sql: str) -> str:
    return sql.replace("TABLE t ", "TABLE {t} ").replace("ON t", "ON {t}")


@pytest.mark.also_tidb
async def test_the_second_shard_is_as_if_learned_anew_whatever_the_target_lacks(
    learner: Learner,
) -> None:
    create(learner, ODD)
    learner.source.execute("ALTER TABLE t_2 AUTO_INCREMENT = 700", database=learner.database)
    first, second = await learner.read("t_1"), await learner.read("t_2")
    for sql in map(bare, STATEMENTS):
        first = await learner.after(first, "t_1", sql)
        second = await learner.both_ways(second, "t_2", sql)
        assert second.structure is not None
        assert (second.structure.schema, second.structure.name) == (learner.database, "t_2")
        learner.source.execute(sql.format(t="t_2"), database=learner.database)
        really = (await learner.read("t_2")).structure
        assert really is not None
        assert [c.name for c in second.structure.columns] == [c.name for c in really.columns]


@pytest.mark.also_tidb
async def test_the_second_shard_costs_nothing(learner: Learner) -> None:
    create(learner, PLAIN)
    learner.source.execute("INSERT INTO t_2 VALUES (7, 1, 'a')", database=learner.database)
    held = {table: await learner.read(table) for table in ("t_1", "t_2")}
    statements = (
        "ALTER TABLE {t} ADD c INT, ADD d TEXT AFTER id",
        "ALTER TABLE {t} DROP a, CHANGE b b2 VARCHAR(20) NOT NULL",
        "CREATE INDEX i ON {t} (c)",
        # TiDB takes it as its single changes only.
        "ALTER TABLE {t} ADD e INT, ADD INDEX (e)",
    )
    costs = []
    for table in held:
        before = learner.connection.learned
        for sql in statements:
            held[table] = await learner.both_ways(held[table], table, sql)
        costs.append(learner.connection.learned - before)
    assert costs[0] == 2 * costs[1], "the second shard was learned anew once, for comparison"
    before = learner.connection.learned
    again = await learner.after(await learner.read("t_2"), "t_2", statements[0])
    assert again.structure is not None
    assert learner.connection.learned == before


@pytest.mark.also_tidb
async def test_a_series_of_changes_needs_one_table_for_all_shards(
    learner: Learner, target_server: DatabaseServer
) -> None:
    create(learner, PLAIN)
    held = {table: await learner.read(table) for table in ("t_1", "t_2")}
    sql = (
        "ALTER TABLE {t} ADD c INT DEFAULT 1",
        "ALTER TABLE {t} MODIFY c BIGINT DEFAULT 1",
        "CREATE INDEX i ON {t} (c)",
        "ALTER TABLE {t} DROP b",
    )
    for one in sql:
        for table in held:
            held[table] = await learner.after(held[table], table, one)
    # The structure of the shard may be written otherwise by the target's server.
    assert 1 <= learner.reading.learned <= 2
    assert learner.connection.learned == len(sql)
    # Another session has changed the table: it is made anew.
    made = learner.reading.learned
    target_server.execute(f"ALTER TABLE {learner.database}_meta.scratch ADD other INT")
    after = await learner.after(held["t_1"], "t_1", "ALTER TABLE {t} ADD d INT")
    assert after.structure is not None
    assert [column.name for column in after.structure.columns] == ["id", "a", "c", "d"]
    assert learner.reading.learned == made + 1


async def test_what_sessions_have_set_is_told_apart(learner: Learner) -> None:
    """The same text with other settings is another statement, whoever comes first."""
    create(learner, PLAIN)
    before = await learner.read("t_1")
    sql = 'ALTER TABLE {t} ADD "c" CHAR(3)'
    with_names = await learner.both_ways(
        before, "t_1", sql, replace(NO_CONTEXT, sql_mode=ANSI_QUOTES)
    )
    refused = await learner.both_ways(before, "t_1", sql, replace(NO_CONTEXT, sql_mode=0))
    plain = await learner.both_ways(
        before, "t_1", sql, replace(NO_CONTEXT, sql_mode=ANSI_QUOTES | NO_BACKSLASH_ESCAPES)
    )
    assert with_names.known
    assert plain.known
    assert not refused.known
    assert (await learner.after(before, "t_1", sql, replace(NO_CONTEXT, sql_mode=0))) == refused


async def test_a_target_with_other_settings_is_learned_on_anew(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_tracker, "LOOK_SECONDS", 0.0)
    create(learner, PLAIN)
    before = await learner.read("t_1")
    sql = "ALTER TABLE {t} ADD c TIMESTAMP"
    await learner.after(before, "t_1", sql)
    seen = learner.connection.learned
    await learner.after(before, "t_1", sql)
    assert learner.connection.learned == seen
    await learner.connection.execute("SET GLOBAL innodb_default_row_format = 'compact'")
    try:
        await learner.after(before, "t_1", sql)
        assert learner.connection.learned > seen
    finally:
        await learner.connection.execute("SET GLOBAL innodb_default_row_format = 'dynamic'")


@pytest.mark.also_tidb
async def test_a_server_that_is_left_alone_keeps_its_traits(
    target_server: DatabaseServer, database_name: str
) -> None:
    with closing(Connection(address(target_server))) as connection:
        target_server.execute(f"CREATE DATABASE {database_name}")
        before = await server_traits(connection, database_name)
        target_server.execute(
            "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)", database=database_name
        )
        assert await server_traits(connection, database_name) == before
        target_server.execute(f"ALTER DATABASE {database_name} COLLATE utf8mb4_unicode_ci")
        assert await server_traits(connection, database_name) != before


def changes(chance: random.Random, columns: list[str]) -> str:
    """A random ALTER of a shard that has these columns besides its key."""
    new = f"n{chance.randrange(6)}"
    kind = chance.choice(["INT", "BIGINT UNSIGNED", "VARCHAR(9)", "TEXT", "DECIMAL(9,2)"])
    place = chance.choice(["", " FIRST", " AFTER id"])
    actions = [f"ADD {new} {kind}{place}", f"ADD INDEX (id), ADD {new} {kind}"]
    if columns:
        old = chance.choice(columns)
        actions += [f"DROP {old}", f"CHANGE {old} {new} {kind}", f"MODIFY {old} {kind}{place}"]
    return "ALTER TABLE {t} " + chance.choice(actions)


@pytest.mark.also_tidb
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
async def test_random_changes_are_remembered_as_they_are(learner: Learner, seed: int) -> None:
    create(learner, PLAIN)
    chance = random.Random(seed)
    held = [await learner.read(table) for table in ("t_1", "t_2")]
    for _ in range(8):
        structure = held[0].structure
        assert structure is not None
        columns = [column.name for column in structure.columns if column.name != "id"]
        sql = changes(chance, columns)
        first = await learner.after(held[0], "t_1", sql)
        second = await learner.both_ways(held[1], "t_2", sql)
        assert first.known is second.known
        if first.structure is not None:
            held = [first, second]

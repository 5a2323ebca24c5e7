"""Two processes of one task learn at the same moment, and each learns its own statement."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import anyio
import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.scratch_names import drop_scratch_tables, scratch_table
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.scratch.scratch_table import ScratchTable
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from tests.support.streams.applying import address_of

TASK = "merge"

pytestmark = pytest.mark.also_tidb


class Suspended(Connection):
    """A connection whose process is suspended once, right behind a statement that begins so."""

    def __init__(self, server: DatabaseServer, head: str) -> None:
        super().__init__(address_of(server))
        self._head = head
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def execute(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> int:
        affected = await super().execute(sql, args, patience=patience)
        if sql.startswith(self._head) and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return affected


@pytest.fixture
async def before(target_server: DatabaseServer, database_name: str) -> AsyncIterator[Table]:
    target_server.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY, a INT, b INT)",
    )
    connection = Connection(address_of(target_server))
    found = await read_table(connection, TableName(database_name, "t"))
    assert found is not None
    yield found
    connection.close()


async def test_each_process_learns_its_own_statement(
    target_server: DatabaseServer, database_name: str, before: Table
) -> None:
    old, new = Suspended(target_server, "CREATE TABLE"), Suspended(target_server, "ALTER TABLE")
    reading = Connection(address_of(target_server))
    learned: dict[str, list[str]] = {}

    async def learn(who: str, table: ScratchTable, sql: str) -> None:
        outcome = await table.outcome_of(before, classify(sql, default_schema=database_name))
        assert outcome.structure is not None
        learned[who] = [column.name for column in outcome.structure.columns]
        await table.close()

    awake, made = anyio.Event(), anyio.Event()

    async def suspend() -> None:
        made.set()
        await awake.wait()

    async with anyio.create_task_group() as tasks:

        async def go_on() -> None:
            """The old process wakes, makes its scratch table, and sleeps again."""
            old.meanwhile = suspend
            tasks.start_soon(
                learn,
                "old",
                ScratchTable(old, scratch_table(database_name, TASK), old),
                "ALTER TABLE t ADD x INT AFTER id",
            )
            await made.wait()

        new.meanwhile = go_on
        await learn(
            "new",
            ScratchTable(reading, scratch_table(database_name, TASK), new),
            "ALTER TABLE t MODIFY b INT AFTER id",
        )
        awake.set()
    assert learned == {"new": ["id", "b", "a"], "old": ["id", "x", "a", "b"]}
    reading.close()
    old.close()
    new.close()


async def test_what_processes_left_behind_is_removed_and_nothing_else(
    target_server: DatabaseServer, database_name: str
) -> None:
    left = [scratch_table(database_name, TASK) for _ in range(2)]
    others = [
        TableName(database_name, f"{TASK}_scratch_member"),  # a table of a task merge_scratch
        scratch_table(database_name, f"{TASK}_scratch"),
        scratch_table(database_name, "amerge"),
        scratch_table(database_name, "mergers"),
    ]
    target_server.execute(
        f"CREATE DATABASE {database_name}",
        *(f"CREATE TABLE {table.quoted} (id INT)" for table in (*left, *others)),
    )
    connection = Connection(address_of(target_server))
    await drop_scratch_tables(connection, database_name, TASK)
    await drop_scratch_tables(connection, database_name, TASK)
    connection.close()
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema='{database_name}'"
    assert {row[0] for row in target_server.execute(sql)} == {other.table for other in others}

"""Tables that go while a task starts."""

from __future__ import annotations

import pytest

from actors.task.startup import source_start
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.schema.structure.inspection import list_tables
from tests.support.tasks.merging import Merging


async def test_a_new_table_is_dropped_after_the_tables_were_listed(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(9))", shards=2)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("CREATE TABLE x_3 (id INT PRIMARY KEY, v VARCHAR(9))")

    async def listing(connection: Connection) -> list[TableName]:
        found = await list_tables(connection)
        merging.do("DROP TABLE IF EXISTS x_3")
        return found

    monkeypatch.setattr(source_start, "list_tables", listing)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'a')")
        await merging.caught_up(generation)
    assert merging.differences() == {}

"""An account of the target whose rights come by roles has them as any other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from replicator.checks.target.target_effects import effects_on
from replicator.downstream.ddl.database_drop import drop_database
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer

RIGHTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER, EVENT, EXECUTE"


class Holder:
    """An account with a default role, to which another role was granted that has the rights."""

    def __init__(self, server: DatabaseServer, name: str, mariadb: bool) -> None:
        self.server = server
        self.name = name
        self.address = DatabaseAddress("127.0.0.1", server.port, name, "")
        server.execute(
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t (id INT PRIMARY KEY)",
            f"CREATE ROLE {name}_inner, {name}_outer",
            f"GRANT {RIGHTS} ON {name}.* TO {name}_inner",
            f"GRANT {name}_inner TO {name}_outer",
            f"CREATE USER {name}@'%' IDENTIFIED BY ''",
            f"GRANT {name}_outer TO {name}@'%'",
            f"SET DEFAULT ROLE {name}_outer {'FOR' if mariadb else 'TO'} {name}@'%'",
        )

    async def unseen(self) -> list[str]:
        """What the account may not see of its schema."""
        with closing(Connection(self.address)) as connection:
            _, unseen = await effects_on(connection, {TableName(self.name, "t")})
            return [result.name for result in unseen]


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def holder(request: pytest.FixtureRequest, database_name: str) -> Iterator[Holder]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    name = database_name[:20]
    yield Holder(server, name, request.param.startswith("mariadb"))
    server.execute(
        f"DROP USER {name}@'%'",
        f"DROP ROLE {name}_inner, {name}_outer",
        f"DROP DATABASE IF EXISTS {name}",
    )


async def test_triggers_and_events_are_seen_by_the_rights_of_a_role(holder: Holder) -> None:
    assert await holder.unseen() == []
    holder.server.execute(f"REVOKE TRIGGER, EVENT ON {holder.name}.* FROM {holder.name}_inner")
    assert await holder.unseen() == ["target_triggers", "target_events"]


async def test_a_database_in_which_a_role_sees_all_is_dropped(holder: Holder) -> None:
    with closing(Connection(holder.address)) as connection:
        await drop_database(connection, holder.name, [TableName(holder.name, "t")])
    assert holder.server.execute(f"SHOW DATABASES LIKE '{holder.name}'") == ()

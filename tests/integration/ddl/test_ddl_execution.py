"""Statements of a DDL item run once each, whenever the process dies between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import anyio
import pymysql.err
import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.ddl import ddl_execution
from replicator.downstream.ddl.ddl_execution import (
    DdlExecution,
    DdlExecutor,
    DdlRefusedError,
    TargetLockedError,
)
from replicator.downstream.meta.all_tables import create_tables
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import Member, TableName
from replicator.mysql.session_context.statement_context import NO_CONTEXT
from replicator.mysql.session_context.statement_session import StatementSessions
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.structure.inspection import read_table


@pytest.fixture
async def connection(
    target_server: DatabaseServer, database_name: str
) -> AsyncIterator[Connection]:
    server = target_server
    server.execute(f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t (id INT)")
    made = Connection(DatabaseAddress(server.host, server.port, server.user, server.password))
    yield made
    made.close()


@pytest.fixture
def ddl(database_name: str) -> DdlExecution:
    """Two statements, neither of which can run twice, in place of another one."""
    target = TableName(database_name, "t")
    return DdlExecution(
        target=target,
        member=Member("a", TableName("s", "t1")),
        transaction=7,
        sql=f"ALTER TABLE {target} ADD x INT",
        change=None,
        instead=(f"ALTER TABLE {target} ADD y INT", f"ALTER TABLE {target} ADD z INT"),
    )


async def columns(connection: Connection, ddl: DdlExecution) -> list[str]:
    table = await read_table(connection, ddl.target)
    assert table is not None
    return [column.name for column in table.columns]


@pytest.mark.parametrize("point", [Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED])
@pytest.mark.parametrize("time", [1, 2])
async def test_death_between_the_statements(
    executor: DdlExecutor,
    connection: Connection,
    ddl: DdlExecution,
    monkeypatch: pytest.MonkeyPatch,
    point: Failpoint,
    time: int,
) -> None:
    reached: list[Failpoint] = []

    def die(here: Failpoint) -> None:
        reached.append(here)
        if reached.count(point) == time and here is point:
            raise KeyError("died")

    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", die)
        with pytest.raises(KeyError, match="died"):
            await executor.execute(ddl)
    await executor.execute(ddl)
    assert await columns(connection, ddl) == ["id", "y", "z"]
    assert not await executor.execute(ddl)


async def test_nothing_is_executed_of_a_skipped_one(
    executor: DdlExecutor, connection: Connection, ddl: DdlExecution
) -> None:
    await executor.execute(replace(ddl, instead=()))
    assert await columns(connection, ddl) == ["id"]
    assert not await executor.execute(ddl), "it is done"


async def test_a_refused_one_may_be_changed(
    executor: DdlExecutor, connection: Connection, ddl: DdlExecution
) -> None:
    assert ddl.instead is not None
    with pytest.raises(DdlRefusedError):
        await executor.execute(replace(ddl, instead=(ddl.instead[0], ddl.instead[0])))
    await executor.execute(replace(ddl, instead=ddl.instead[1:]))
    assert await columns(connection, ddl) == ["id", "y", "z"]


async def test_a_login_that_is_refused_is_no_refusal_of_the_statement(
    executor: DdlExecutor,
    connection: Connection,
    ddl: DdlExecution,
    target_server: DatabaseServer,
    database_name: str,
) -> None:
    account = f"'{database_name}'@'%'"
    target_server.execute(
        f"CREATE USER {account} IDENTIFIED BY 'pa'", f"GRANT ALL ON *.* TO {account}"
    )
    connection.close()
    connection.address = replace(connection.address, user=database_name, password="pa")
    await connection.fetch("SELECT 1")
    # Who is logged in stays so, and a statement has a session of its own.
    target_server.execute(f"ALTER USER {account} IDENTIFIED BY 'new'")
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        await executor.execute(ddl)
    target_server.execute(f"ALTER USER {account} IDENTIFIED BY 'pa'")
    await executor.execute(ddl)
    assert await columns(connection, ddl) == ["id", "y", "z"]


async def test_the_former_run_may_end_while_the_statement_is_tried_again(
    executor: DdlExecutor,
    connection: Connection,
    ddl: DdlExecution,
    target_server: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ddl.instead is not None
    first = ddl.instead[0]

    def die(_: Failpoint) -> None:
        raise KeyError("died")

    def end(_: Failpoint) -> None:
        # A server goes on with an ALTER whose client is gone.
        if not ended:
            ended.append(target_server.execute(first))

    ended: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", die)
        with pytest.raises(KeyError, match="died"):
            await executor.execute(ddl)
        patched.setattr(ddl_execution, "reach", end)
        await executor.execute(ddl)
    assert await columns(connection, ddl) == ["id", "y", "z"]
    assert not await executor.execute(ddl)


async def test_what_was_passed_over_once_is_never_executed(
    executor: DdlExecutor, connection: Connection, ddl: DdlExecution
) -> None:
    """Read again, a statement may look harmless to other shards that were there before."""
    await executor.execute(replace(ddl, instead=()))
    before = await columns(connection, ddl)
    assert await executor.execute(replace(ddl, instead=None)) is False
    assert await columns(connection, ddl) == before


async def test_an_error_is_no_proof_that_all_is_done(
    executor: DdlExecutor, connection: Connection, ddl: DdlExecution
) -> None:
    before = await read_table(connection, ddl.target)
    db = ddl.target.schema
    await connection.execute(f"CREATE TABLE {db}.other (id INT, x INT, y INT)")
    after = await read_table(connection, TableName(db, "other"))
    await connection.execute(f"ALTER TABLE {ddl.target.quoted} ADD x INT")
    both = replace(
        ddl,
        sql=f"ALTER TABLE {ddl.target.quoted} ADD x INT, ADD y INT",
        instead=None,
        change=MemberChange(before, after),
    )
    with pytest.raises(DdlRefusedError, match="column y is missing"):
        await executor.execute(both)
    await connection.execute(f"ALTER TABLE {ddl.target.quoted} ADD y INT")
    await executor.execute(both)
    like = replace(
        both,
        target=TableName(db, "new"),
        sql=f"CREATE TABLE IF NOT EXISTS {db}.new LIKE {db}.missing",
        change=MemberChange(None, None, creates=True),
    )
    with pytest.raises(DdlRefusedError, match="the table does not exist"):
        await executor.execute(like)


async def test_a_statement_that_takes_long_keeps_no_other_target_waiting(
    executor: DdlExecutor,
    connection: Connection,
    ddl: DdlExecution,
    target_server: DatabaseServer,
    database_name: str,
) -> None:
    target_server.execute(f"CREATE TABLE {database_name}.u (id INT)")
    other = TableName(database_name, "u")
    quick = replace(ddl, target=other, sql=f"ALTER TABLE {other} ADD x INT", instead=None)
    with target_server.connect() as reader, reader.cursor() as cursor:
        cursor.execute("BEGIN")
        # The lock on its metadata lets no ALTER of the table through.
        cursor.execute(f"SELECT * FROM {ddl.target.quoted}")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(executor.execute, ddl)
            with anyio.fail_after(60):
                while not await _waits_for_metadata(connection):
                    await anyio.sleep(0.02)
                await executor.execute(quick)
            assert await columns(connection, quick) == ["id", "x"]
            assert await columns(connection, ddl) == ["id"]
            cursor.execute("COMMIT")
    assert await columns(connection, ddl) == ["id", "y", "z"]


async def test_a_statement_that_others_keep_waiting_is_given_up_and_runs_later(
    executor: DdlExecutor,
    connection: Connection,
    ddl: DdlExecution,
    target_server: DatabaseServer,
) -> None:
    one = replace(ddl, instead=None, lock_seconds=1)
    with target_server.connect() as reader, reader.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT * FROM {ddl.target.quoted}")
        with pytest.raises(TargetLockedError, match=r"(?i)lock wait timeout"):
            await executor.execute(one)
        cursor.execute("COMMIT")
    # What somebody does to the table meanwhile must not look like the statement.
    await connection.execute(f"ALTER TABLE {ddl.target.quoted} ADD theirs INT")
    assert await executor.execute(one)
    assert await columns(connection, ddl) == ["id", "theirs", "x"]
    assert not await executor.execute(one)


async def test_what_keeps_a_statement_waiting_may_be_its_former_run(
    executor: DdlExecutor,
    connection: Connection,
    ddl: DdlExecution,
    target_server: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server goes on with an ALTER whose client is gone; it may take longer than the limit."""
    one = replace(ddl, instead=None, lock_seconds=1)

    def die(_: Failpoint) -> None:
        raise KeyError("died")

    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", die)
        with pytest.raises(KeyError, match="died"):
            await executor.execute(one)

    async def run_again() -> None:
        try:
            await executor.execute(one)
        except TargetLockedError:
            # Set aside, and tried again.
            ended.set()
            await anyio.sleep(1)
            await executor.execute(one)

    ended = anyio.Event()
    with target_server.connect() as former, former.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {ddl.target.quoted} WRITE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_again)
            with anyio.move_on_after(3):
                await ended.wait()
            cursor.execute(one.sql)
            cursor.execute("UNLOCK TABLES")
    assert await columns(connection, ddl) == ["id", "x"]
    assert not await executor.execute(one)


async def test_what_the_task_file_says_of_waiting_for_locks_holds(
    connection: Connection, database_name: str, ddl: DdlExecution, target_server: DatabaseServer
) -> None:
    address = replace(connection.address, session=(("lock_wait_timeout", "1"),))
    patient = Connection(address)
    meta = MetaStore(
        connection, database_name, "task", Lease(database_name, "task", this_process())
    )
    await create_tables(connection, database_name, "task")
    await meta.lease.begin(connection)
    executor = DdlExecutor(StatementSessions(patient), meta)
    with target_server.connect() as reader, reader.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT * FROM {ddl.target.quoted}")
        with pytest.raises(TargetLockedError), anyio.fail_after(60):
            await executor.execute(replace(ddl, instead=None, lock_seconds=3600))
    patient.close()


async def _waits_for_metadata(connection: Connection) -> bool:
    rows = await connection.fetch(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE '%%metadata lock%%'"
    )
    return bool(rows)


async def refused(executor: DdlExecutor, target: TableName, actions: str) -> bool:
    statement = classify(f"ALTER TABLE {target.quoted} {actions}", default_schema=target.schema)
    return await executor.rehearsal.refused(target, [statement], NO_CONTEXT)


@pytest.mark.not_on_tidb("LOCK TABLES locks nothing there")
async def test_a_lock_is_no_refusal_of_a_statement(
    executor: DdlExecutor,
    connection: Connection,
    target_server: DatabaseServer,
    database_name: str,
) -> None:
    target = TableName(database_name, "t")
    await connection.execute("SET SESSION lock_wait_timeout = 1")
    with target_server.connect() as session, session.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {target} WRITE")
        with pytest.raises(DatabaseUnavailableError, match="Lock wait timeout"):
            await refused(executor, target, "ADD c INT")
    assert not await refused(executor, target, "ADD c INT")


@pytest.mark.parametrize("check", ["", ", CHECK (p > 0)"])
async def test_a_copy_has_no_foreign_keys(
    executor: DdlExecutor, target_server: DatabaseServer, database_name: str, check: str
) -> None:
    target = TableName(database_name, "child")
    target_server.execute(
        f"CREATE TABLE {database_name}.parent (id INT PRIMARY KEY)",
        f"CREATE TABLE {target} (p INT, KEY k (p), CONSTRAINT f FOREIGN KEY (p)"
        f" REFERENCES {database_name}.parent (id){check})",
    )
    assert not await refused(executor, target, "DROP INDEX k")
    target_server.execute("SET foreign_key_checks = 0", f"ALTER TABLE {target} DROP INDEX k")
    assert not await refused(executor, target, "ADD KEY f (p)")
    assert await refused(executor, target, "DROP INDEX l")


async def test_a_target_that_is_not_there_is_altered_by_no_statement(
    executor: DdlExecutor, database_name: str
) -> None:
    assert await refused(executor, TableName(database_name, "none"), "ADD c INT")

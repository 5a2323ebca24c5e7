"""Answers that are none: a connection of any kind tells that the server can't be understood.

A proxy without TLS damages one packet after another of greeting, login, look-ups and dump request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing

import pymysql.err
import pytest

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.errors import DatabaseUnavailableError
from replicator.mysql.server.binlog_end import binlog_end, blocking_binlog_end
from replicator.mysql.server.identity import server_identity
from replicator.pipeline.copy.binary_rows import UnknownTypeError
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.copy.typed_rows import LargeRowError
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.damaging_proxy import DAMAGES, OddServer
from tests.support.streams.binlog_streams import here

TOLD = (
    pymysql.err.MySQLError,
    DatabaseUnavailableError,
    BinlogError,
    StreamLostError,
    UnknownTypeError,
    LargeRowError,
)

Use = Callable[[DatabaseAddress, DatabaseServer], Awaitable[None]]


async def look_up(address: DatabaseAddress, _: DatabaseServer) -> None:
    with closing(Connection(address, patience=5)) as connection:
        await server_identity(connection)
        await binlog_end(connection)
        async with connection.transaction() as transaction:
            await transaction.fetch("SELECT 1, 'a', NOW(), NULL")


async def copy(address: DatabaseAddress, _: DatabaseServer) -> None:
    with closing(SourceStream(address)) as stream:
        blocking_binlog_end(stream)
        stream.begin_snapshot()
        list(stream.blocks(b"SELECT 1, 'a', NULL"))
        list(stream.typed(b"SELECT 1, 'a'").blocks(1 << 20))


async def write(address: DatabaseAddress, _: DatabaseServer) -> None:
    with closing(Session(address)) as session:
        session.run(b"CREATE TEMPORARY TABLE mysql.odd_answer (a TEXT)")
        session.load(b"LOAD DATA LOCAL INFILE 'x' INTO TABLE mysql.odd_answer", [b"a\n"])
        session.warnings()


async def follow(address: DatabaseAddress, server: DatabaseServer) -> None:
    with closing(
        BinlogConnection(
            BinlogSource(
                DatabaseAddress(address.host, address.port, address.user, address.password),
                server_id=77,
                heartbeat=1,
                read_timeout=5,
            ),
            here(server),
        )
    ) as stream:
        stream.binlogs()
        stream.open()


USES = (look_up, copy, write, follow)


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"]
)
@pytest.mark.parametrize("kind", ["mariadb_source", "mysql56_source"])
@pytest.mark.parametrize("use", USES, ids=[use.__name__ for use in USES])
async def test_no_answer_raises_anything_but_what_callers_expect(
    request: pytest.FixtureRequest, kind: str, use: Use, every: bool
) -> None:
    """Some: a few packets, each in one way, and each way on some of them."""
    server: DatabaseServer = request.getfixturevalue(kind)
    with OddServer(server.port).listening() as whole:
        await use(DatabaseAddress("127.0.0.1", whole.port, server.user, server.password), server)
    assert whole.seen > 10
    unexpected = []
    # The first packets are all of another kind; then come the rows of long lists.
    numbers = [*range(min(whole.seen, 20)), *range(20, whole.seen, 1 + whole.seen // 20)]
    for number in numbers:
        for way, (name, damage) in enumerate(DAMAGES.items()):
            if not every and way != (number * 5 + 1) % len(DAMAGES):
                continue
            with OddServer(server.port, damage, number).listening() as line:
                address = DatabaseAddress("127.0.0.1", line.port, server.user, server.password)
                try:
                    await use(address, server)
                except TOLD:
                    pass
                except Exception as error:  # noqa: BLE001
                    unexpected.append((number, name, repr(error)))
    assert not unexpected

"""Rows that are copied as they are stored, without becoming text: from each kind of source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.downstream.rows.bulk_statements import TypedStatement
from replicator.downstream.rows.load_data import InexactLoadError
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.column_types import Literal
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.blocking_client import WatchedConnection
from replicator.pipeline.copy.copy_plan import same_type
from replicator.pipeline.copy.result_bytes import BLOCK_BYTES
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.copy.typed_rows import LargeRowError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.structure import Column
from tests.integration.rows.test_rows_types import columns, groups_of, rows, selected
from tests.support.servers.matrix import matrix
from tests.support.tasks.checking import executions, global_setting
from tests.support.tasks.merging import Merging
from tests.support.tasks.task_files import endpoint

MakeMerging = Callable[..., Merging]


@matrix("copy", broad=True)
async def test_every_type_that_needs_no_text_is_copied_byte_for_byte(merging: Merging) -> None:
    merging.mode = "full"
    groups = {
        name: {t: v for t, v in types.items() if same_type(Column("c", t), Column("c", t))}
        for name, types in groups_of(merging.source, merging.target).items()
    }
    groups = {name: types for name, types in groups.items() if types}
    assert {"numbers", "temporal", "strings"} <= groups.keys()
    for name, types in groups.items():
        merging.create(name, f"(id INT PRIMARY KEY, {columns(types)})", with_target=False)
        merging.do(
            *(
                f"INSERT INTO {name}_1 VALUES ({n}, {','.join(values)})"
                for n, values in enumerate(rows(types))
            )
        )
    takes_bulks = isinstance(merging.target, MariaDBServer)
    before = executions(merging.target) if takes_bulks else 0
    generation = await merging.copy()
    assert generation.finished
    if takes_bulks:
        assert executions(merging.target) >= before + len(groups)
    shown = {name: selected(types, merging.target, "id") for name, types in groups.items()}
    assert not merging.differences(shown)


@pytest.fixture
def texts(merging_from: MakeMerging, mariadb_source: DatabaseServer, only_mariadb: None) -> Merging:
    texts = merging_from(mariadb_source)
    texts.mode = "full"
    texts.create("t", "(id INT PRIMARY KEY, a TEXT, b TEXT)", with_target=False)
    texts.do(
        "INSERT INTO t_1 SELECT seq, REPEAT(CHAR(64 + seq % 32), seq * 7), NULL FROM seq_1_to_2000"
    )
    return texts


@pytest.fixture
def only_mariadb(target_server: DatabaseServer) -> None:
    if not isinstance(target_server, MariaDBServer):
        pytest.skip("other servers take no bulks")


@pytest.mark.parametrize("side", ["source", "target"])
async def test_a_server_that_prepares_no_statement_gets_text(texts: Merging, side: str) -> None:
    server = texts.source if side == "source" else texts.target
    before = executions(texts.target)
    with global_setting(server, "max_prepared_stmt_count", "0"):
        generation = await texts.copy()
    assert generation.finished
    assert executions(texts.target) == before
    assert not texts.differences()


async def test_rows_larger_than_a_packet_get_there_as_text(texts: Merging) -> None:
    texts.do("INSERT INTO t_1 VALUES (5000, REPEAT('x', 40000), REPEAT('y', 40000))")
    # A setting of its own makes a connection of its own, with the limit of now.
    target = endpoint(texts.target) | {"session": {"wait_timeout": "1002"}}
    texts.more = {"target-database": target}
    with global_setting(texts.target, "max_allowed_packet", "65536"):
        generation = await texts.copy()
    assert generation.finished
    assert not texts.differences()


async def test_a_key_that_is_there_is_replaced_where_that_is_asked_for(
    texts: Merging,
) -> None:
    texts.more = {"loaders": {"last": {"on-duplicate-logical": "replace"}}}
    texts.instance = {"loader-config-name": "last"}
    texts.source.execute(
        f"CREATE TABLE {texts.database}.t_2 LIKE {texts.database}.t_1",
        f"INSERT INTO {texts.database}.t_2 SELECT id + 1000, 'second', 'x'"
        f" FROM {texts.database}.t_1",
    )
    before = executions(texts.target)
    generation = await texts.copy()
    assert generation.copy is not None
    assert generation.copy.progress.counts.replaced == 1000
    assert executions(texts.target) > before
    ((count,),) = texts.target.execute(f"SELECT COUNT(*) FROM {texts.database}.t")
    assert count == 3000


def statement_for(session: Session, stream: SourceStream, texts: Merging, query: str) -> int:
    rows = stream.typed(query.encode())
    target = TargetTable(0, texts.database, "t", 1, replace=True)
    names = [TargetColumn("id", Literal.NUMBER), TargetColumn("a", Literal.TEXT, "latin1")]
    statement = TypedStatement(session, target, names, rows.types, b"INSERT")
    return statement.write(block for block, _ in rows.blocks(statement.room))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("SELECT 7 AS id, 'two' AS a UNION ALL SELECT 7, 'two'", "Duplicate entry"),
        # Spaces that are cut off make a note alone.
        ("SELECT seq, IF(seq = 900, 'abc  ', 'abc') FROM seq_1_to_2000", "truncated"),
        ("SELECT seq, IF(seq = 900, 'abcd', 'abc') FROM seq_1_to_2000", "too long"),
        ("SELECT seq * 3000000, 'abc' FROM seq_1_to_2000", "Out of range"),
        ("SELECT seq, IF(seq = 900, NULL, 'abc') FROM seq_1_to_2000", "cannot be null"),
    ],
    ids=["twice", "spaces", "long", "large", "null"],
)
def test_what_does_not_fit_is_noticed_and_the_session_stays(
    texts: Merging, values: str, message: str
) -> None:
    texts.target.execute(
        f"CREATE TABLE {texts.database}.t (id INT PRIMARY KEY, a VARCHAR(3) NOT NULL)"
    )
    stream = SourceStream(address_of(texts.source))
    session = Session(address_of(texts.target))
    stream.run(f"USE {texts.database}".encode())
    session.run(b"BEGIN")
    with pytest.raises(InexactLoadError, match=message):
        statement_for(session, stream, texts, values)
    session.run(b"ROLLBACK")
    assert session.rows(b"SELECT COUNT(*) FROM %s.t" % texts.database.encode()) == ((0,),)
    (prepared,) = session.rows(b"SHOW SESSION STATUS LIKE 'Prepared_stmt_count'")
    assert int(prepared[1]) == 0
    stream.close()
    session.close()


def test_a_row_that_has_no_room_ends_the_reading(texts: Merging) -> None:
    stream = SourceStream(address_of(texts.source))
    rows = stream.typed(f"SELECT * FROM {texts.database}.t_1 ORDER BY id".encode())
    counts: list[int] = []
    with pytest.raises(LargeRowError, match="in statements of 5000"):
        counts.extend(count for _, count in rows.blocks(5000))
    # The last whose packet with what is added fits: 4 + 1 + 1 + 5 + 3 + 4,984 + 3.
    assert sum(counts) == 712
    stream.close()


def test_what_comes_in_small_pieces_makes_large_blocks(
    texts: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = WatchedConnection.receive
    monkeypatch.setattr(
        # As by TLS, whose records are small.
        WatchedConnection, "receive", lambda own, room: receive(own, room[:16_384])
    )  # fmt: skip
    stream = SourceStream(address_of(texts.source))
    rows = stream.typed(f"SELECT * FROM {texts.database}.t_1".encode())
    blocks = [(len(block), count) for block, count in rows.blocks(1 << 24)]
    assert sum(count for _, count in blocks) == 2000
    # The next row, of 14 KB at most, had no room.
    assert all(BLOCK_BYTES - 15_000 < size <= BLOCK_BYTES for size, _ in blocks[:-1])
    stream.close()


def test_a_timestamp_that_only_newer_servers_hold_is_noticed(
    mariadb11_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    for server in (mariadb11_source, mariadb_target):
        server.execute(
            f"CREATE DATABASE {database_name}",
            f"CREATE TABLE {database_name}.t (a TIMESTAMP NULL)",
        )
    mariadb11_source.execute(f"INSERT INTO {database_name}.t VALUES ('2020-01-01'), ('2039-01-01')")
    stream = SourceStream(address_of(mariadb11_source))
    session = Session(address_of(mariadb_target))
    rows = stream.typed(f"SELECT a FROM {database_name}.t".encode())
    table = TargetTable(0, database_name, "t", 1, replace=True)
    columns = [TargetColumn("a", Literal.QUOTED)]
    statement = TypedStatement(session, table, columns, rows.types, b"INSERT")
    # As a parameter of its own type MariaDB 10 would store NULL, without a warning.
    with pytest.raises(InexactLoadError, match="Incorrect datetime value: '2039-01-01"):
        statement.write(block for block, _ in rows.blocks(statement.room))
    stream.close()
    session.close()


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)

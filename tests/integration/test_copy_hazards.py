"""What can make a full copy lose rows, double them, stand still or stand in others' way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.pipeline.source_stream import SourceStream
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.schema.connection import Connection, DatabaseAddress
from replicator.target.session import Session
from tests.conftest import StartServer
from tests.integration.test_copy_rules import begun
from tests.support.merging import Merging

MakeMerging = Callable[..., Merging]


def chunks_of(merging: Merging, *, rows: int, speed: int = 0) -> None:
    merging.more |= {
        "mydumpers": {"small": {"rows": rows, "threads": 1}},
        "copy": {"rows-per-second": speed},
    }
    merging.instance = {"mydumper-config-name": "small"}


@pytest.fixture
def merging(merging_from: MakeMerging, mariadb_source: DatabaseServer) -> Merging:
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    chunks_of(merging, rows=5)
    return merging


async def test_keys_whose_text_is_not_their_bytes(merging: Merging) -> None:
    kinds = {
        "uuid": "CONCAT(LPAD(HEX(seq * 7919), 8, '0'), '-1234-4123-8234-', LPAD(seq, 12, '0'))",
        "inet6": "CONCAT('2001:db8::', HEX(seq * 37))",
        "inet4": "CONCAT(seq * 2, '.10.9.', seq)",
    }
    for kind, value in kinds.items():
        merging.create(kind, f"(k {kind} PRIMARY KEY, n INT)", with_target=False)
        merging.do(f"INSERT INTO {kind}_1 SELECT {value}, seq FROM seq_1_to_40")
    await merging.copy()
    assert not merging.differences()


async def test_a_target_with_a_key_that_the_shards_lack(merging: Merging) -> None:
    merging.mode = "all"
    chunks_of(merging, rows=50, speed=200)
    merging.create("a", "(id INT PRIMARY KEY, n INT)")
    merging.create(
        "z",
        "(id INT PRIMARY KEY, n INT)",
        target="(own BIGINT AUTO_INCREMENT PRIMARY KEY, id INT, n INT)",
    )
    merging.do("INSERT INTO a_1 SELECT seq, seq FROM seq_1_to_400")
    merging.do("INSERT INTO z_1 SELECT seq, seq FROM seq_1_to_100")
    async with begun(merging, chunks=1) as (generation, stop):
        merging.do(
            "INSERT INTO z_1 VALUES (1000, 0)",
            "UPDATE z_1 SET n = -1 WHERE id = 1",
            "DELETE FROM z_1 WHERE id = 50",
        )
        await merging.copied(generation)
        await merging.check(generation, {"z": "id, n"})
        stop.set()


async def test_limits_that_a_server_has_for_others(start_server: StartServer) -> None:
    server = start_server(MariaDBServer)
    server.execute("SET GLOBAL sql_select_limit = 3, GLOBAL max_statement_time = 1")
    address = DatabaseAddress(server.host, server.port, server.user, server.password)
    stream = SourceStream(address)
    blocks = stream.blocks(b"SELECT seq FROM mysql.seq_1_to_20")
    assert sum(rows for _, rows in blocks) == 20
    assert stream.rows(b"SELECT SLEEP(1.1)") == [(0,)]
    stream.close()
    session = Session(address)
    assert len(session.rows(b"SELECT seq FROM mysql.seq_1_to_20")) == 20
    session.close()
    connection = Connection(address)
    assert len(await connection.fetch("SELECT seq FROM mysql.seq_1_to_20")) == 20
    connection.close()


async def test_rows_that_are_nothing_but_nothing(merging: Merging) -> None:
    for name, key in (("bag", ""), ("x", "PRIMARY KEY")):
        merging.create(name, f"(s VARCHAR(5) {key})", with_target=False)
        merging.do(f"INSERT INTO {name}_1 VALUES (''), ('N'), ('\\\\N'), ('NULL')")
    merging.do("INSERT INTO bag_1 VALUES (''), (NULL), (NULL)")
    await merging.copy()
    assert not merging.differences()

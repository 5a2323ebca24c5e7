"""XA transactions of the shards: exactly once, whatever stands between their phases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.reading import prepared_transactions, purge_watch
from actors.task.generation import Generation
from replicator.binlog.connection import dump_connection as connection
from replicator.binlog.connection.xa_recover import PreparedAtSource
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.binlog_streams import here, kill_dumps
from tests.support.tasks.checking import purge
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE


@contextmanager
def xa_sessions(server: DatabaseServer, database: str, count: int) -> Iterator[list[Session]]:
    """Sessions named after their numbers; what they leave prepared is rolled back."""
    sessions = [Session(server, database, f"'{number}','b'") for number in range(count)]
    try:
        yield sessions
    finally:
        for session in sessions:
            session.close()


class Session:
    """One XA transaction after the other, of one name."""

    def __init__(self, server: DatabaseServer, database: str, name: str) -> None:
        self.name = name
        self._connection = server.connect(database=database)
        self._prepared = False

    def do(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def prepare(self, *statements: str) -> None:
        """Run statements in a transaction, up to its first phase."""
        name = self.name
        self.do(f"XA START {name}", *statements, f"XA END {name}", f"XA PREPARE {name}")
        self._prepared = True

    def commit(self) -> None:
        self.end("COMMIT")

    def end(self, outcome: str) -> None:
        self.do(f"XA {outcome} {self.name}")
        self._prepared = False

    def leave(self) -> None:
        """Disconnect; another session may end what is prepared."""
        self._connection.close()
        self._prepared = False

    def close(self) -> None:
        if self._connection.open and self._prepared:
            self.end("ROLLBACK")
        if self._connection.open:
            self._connection.close()


def prepared(generation: Generation) -> tuple[str, ...]:
    """What the status shows of the only source."""
    assert generation.running is not None
    position = generation.running.units["a"].reader.progress.position
    assert position is not None
    return tuple(map(str, position.prepared))


def named(event: str, logged: Iterable[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    """The records of one event."""
    return [record for record in logged if record["event"] == event]


async def equal(merging: Merging) -> None:
    """Wait until the target equals the shards, also behind statements that are coordinated."""
    with anyio.fail_after(PATIENCE):
        while merging.differences():
            await anyio.sleep(LOOK_SECONDS)


@pytest.mark.parametrize(
    ("source", "shard_mode"),
    [
        ("mysql_source", "pessimistic"),
        ("mariadb_source", ""),
        pytest.param("mysql_source", "", marks=pytest.mark.slow),
        pytest.param("mariadb11_source", "pessimistic", marks=pytest.mark.slow),
    ],
    indirect=["source"],
)
async def test_restarts_and_schema_changes_between_the_phases(
    merging: Merging, shard_mode: str
) -> None:
    merging.more["shard-mode"] = shard_mode
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(20))", shards=2)
    merging.create("k", "(n INT)")
    merging.create("z", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.generation()
    with xa_sessions(merging.source, merging.database, 4) as (early, late, undone, quick):
        merging.do(
            "INSERT INTO x_1 VALUES (1, 'one'), (2, 'two')", "INSERT INTO k_1 VALUES (1), (1)"
        )
        early.prepare("UPDATE x_1 SET v = 'early', id = id + 10", "INSERT INTO k_1 VALUES (1), (2)")
        async with merging.running() as generation:
            quick.prepare("INSERT INTO x_2 VALUES (100, 'quick')")
            quick.commit()
            merging.do(
                "ALTER TABLE z_1 ADD COLUMN w INT DEFAULT 7",
                "ALTER TABLE z_2 ADD COLUMN w INT DEFAULT 7",
                "INSERT INTO z_1 VALUES (1, 1, 1)",
                "INSERT INTO z_2 VALUES (2, 2, 2)",
            )
            undone.prepare("DELETE FROM k_1 WHERE n = 1 LIMIT 1", "DELETE FROM x_2")
            await merging.caught_up(generation)
            late.prepare("INSERT INTO k_1 VALUES (3)", "INSERT INTO z_2 VALUES (3, 3, 3)")
            await merging.caught_up(generation)
        undone.end("ROLLBACK")
        async with merging.running() as generation:
            merging.do("INSERT INTO k_1 VALUES (4)", "FLUSH BINARY LOGS")
            late.commit()
            await merging.caught_up(generation)
        early.commit()
        quick.prepare("INSERT INTO x_2 VALUES (101, 'again')")
        async with merging.running() as generation:
            await merging.caught_up(generation)
            await equal(merging)
            quick.commit()
            await merging.check(generation)


@pytest.mark.parametrize(
    ("source", "by_gtid"), [("mysql_source", True), ("mariadb_source", False)], indirect=["source"]
)
async def test_what_was_prepared_before_the_start_is_found(
    merging: Merging, *, by_gtid: bool
) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(20))", shards=2)
    with xa_sessions(merging.source, merging.database, 4) as (one, two, again, undone):
        one.prepare("INSERT INTO x_1 VALUES (1, 'older file')")
        again.prepare("INSERT INTO x_1 VALUES (2, 'committed before')")
        again.commit()
        merging.do("FLUSH BINARY LOGS")
        two.prepare("INSERT INTO x_1 VALUES (3, 'newer file')")
        undone.prepare("INSERT INTO x_1 VALUES (4, 'undone')")
        if by_gtid:
            merging.each_source["enable-gtid"] = True
            merging.instance["meta"] = {"binlog-gtid": here(merging.source).gtid}
        merging.generation()
        merging.on(merging.target, "INSERT INTO x VALUES (2, 'committed before')")
        again.prepare("INSERT INTO x_1 VALUES (5, 'the same name')")
        async with merging.running() as generation:
            merging.do("INSERT INTO x_2 VALUES (6, 'between')")
            await merging.caught_up(generation)
            two.commit()
            await merging.caught_up(generation)
            again.commit()
        one.commit()
        undone.end("ROLLBACK")
        async with merging.running() as generation:
            await merging.check(generation)


@pytest.mark.parametrize("source", ["mysql_source"], indirect=True)
async def test_a_commit_of_rows_whose_file_is_gone_is_a_fault(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    # A file is near to being purged when it is one of the oldest.
    kill_dumps(merging.source)
    purge(merging.source)
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(20))", shards=2)
    merging.generation()
    with xa_sessions(merging.source, merging.database, 1) as (session,):
        # It is told once, perhaps before the rows have arrived.
        with capture_logs() as logged:
            async with merging.running() as generation:
                session.prepare("INSERT INTO x_1 VALUES (1, 'lost')")
                merging.do("INSERT INTO x_1 VALUES (2, 'there')", "FLUSH BINARY LOGS")
                await merging.caught_up(generation)
                with anyio.fail_after(PATIENCE):
                    while not (told := named("source.purge-near", logged)):
                        await anyio.sleep(LOOK_SECONDS)
                [place] = prepared(generation)
        assert {entry["position"] for entry in told} == {place}
        async with merging.running() as generation:
            merging.do("INSERT INTO x_1 VALUES (4, 'behind')")
            await merging.caught_up(generation)
            assert prepared(generation) == (place,)
        purge(merging.source)
        with capture_logs() as logged:
            async with merging.running() as generation:
                merging.do("INSERT INTO x_1 VALUES (3, 'there, too')")
                await merging.caught_up(generation)
        assert named("source.prepared-purged", logged)
        session.commit()
        fault = await merging.fault()
    assert fault.event == "source.unreadable"
    assert "X'30',X'62',1 is committed at" in fault.message
    merging.do("SET sql_log_bin = 0", "DELETE FROM x_1 WHERE id = 1")
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mysql_source", "mariadb_source"], indirect=True)
async def test_a_transaction_that_the_source_no_longer_has_is_a_fault(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_transactions, "AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(prepared_transactions, "LOOK_SECONDS", 0.1)
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(20))", shards=2)
    merging.generation()
    names = "X'6100ff','b'", "X'6100ff','c'"
    kept, lost = (Session(merging.source, merging.database, name) for name in names)
    try:
        kept.prepare("INSERT INTO x_1 VALUES (100, 'kept')")
        async with merging.running() as generation:
            # It is there at several looks.
            for number in range(4):
                merging.do(f"INSERT INTO x_2 VALUES ({number}, 'between')")
                await merging.caught_up(generation)
            lost.prepare("INSERT INTO x_1 VALUES (2, 'lost')")
            await merging.caught_up(generation)
            assert len(prepared(generation)) == 2
        lost.leave()
        merging.do("SET sql_log_bin = 0", f"XA ROLLBACK {lost.name}")
        fault = await merging.fault()
        assert fault.event == "source.unreadable"
        assert "X'6100ff',X'63',1 (prepared at" in fault.message
        assert "X'62'" not in fault.message
        # The remedy.
        lost = Session(merging.source, merging.database, lost.name)
        lost.prepare("INSERT INTO x_1 VALUES (3, 'of the same name')")
        lost.end("ROLLBACK")
        async with merging.running() as generation:
            await merging.caught_up(generation)
            kept.commit()
            await merging.caught_up(generation)
        assert merging.differences() == {}
    finally:
        lost.close()
        kept.close()


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_the_rows_of_a_commit_that_was_not_logged_are_added_by_a_repair(
    merging: Merging, spark: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them are on the target already, since they were changed later."""
    monkeypatch.setattr(prepared_transactions, "AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(prepared_transactions, "LOOK_SECONDS", 0.1)
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(20))")
    merging.create("bag", "(n INT, v VARCHAR(20))")
    merging.generation()
    lost = Session(merging.source, merging.database, "'lost'")
    async with merging.running() as generation:
        lost.prepare(
            "INSERT INTO x_1 VALUES (1, 'lost'), (2, 'lost')",
            "INSERT INTO bag_1 VALUES (7, 'lost'), (7, 'lost'), (8, 'lost')",
        )
        await merging.caught_up(generation)
    lost.leave()
    merging.do(
        "SET sql_log_bin = 0",
        f"XA COMMIT {lost.name}",
        "SET sql_log_bin = 1",
        "UPDATE x_1 SET v = 'changed' WHERE id = 1",
        "UPDATE bag_1 SET v = 'changed' WHERE n = 7 LIMIT 1",
        "DELETE FROM bag_1 WHERE n = 8",
    )
    fault = await merging.fault()
    assert fault.event == "source.unreadable"
    assert any("--repair-now" in way for way in fault.remedies)
    lost = Session(merging.source, merging.database, lost.name)
    lost.prepare("INSERT INTO x_1 VALUES (3, 'of the same name')")
    lost.end("ROLLBACK")
    lost.close()
    async with merging.running() as generation:
        await merging.caught_up(generation)
    assert merging.differences() != {}

    async def context() -> SparkContext:
        return spark

    await TargetComparer(merging.task, CompareOptions(repair_now=True), context).run()
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mysql_source"], indirect=True)
async def test_a_source_that_does_not_tell_what_is_prepared_is_warned_of(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> PreparedAtSource:
        return PreparedAtSource(frozenset(), None, "XAER_RMERR")

    monkeypatch.setattr(connection, "prepared_at_source", refuse)
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(20))", shards=1)
    merging.generation()
    with (
        xa_sessions(merging.source, merging.database, 1) as (session,),
        capture_logs() as logged,
    ):
        session.prepare("INSERT INTO x_1 VALUES (1, 'kept')")
        async with merging.running() as generation:
            for number in range(3):
                merging.do(f"INSERT INTO x_1 VALUES ({number + 2}, 'between')")
                await merging.caught_up(generation)
    assert len(named("source.prepared-unchecked", logged)) == 1

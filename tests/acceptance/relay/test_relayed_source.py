"""A source purges its binlog while a lock is open, and the task continues from its relay."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from actors.reading import purge_watch
from actors.task.source_report import source_statuses
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
from tests.support.tasks.shard_ddl import ShardedEstate


@pytest.fixture
def source(start_server: StartServer) -> DatabaseServer:
    return start_server(MariaDBServer)


@pytest.fixture
def estate(
    source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> ShardedEstate:
    """Two shards of a source, with a folder for its relay."""
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    estate = ShardedEstate({"a": source}, target_server, database_name, spark, tmp_path)
    estate.create("A1", "A2")
    relay_dir(estate, tmp_path)
    return estate


def relay_dir(estate: ShardedEstate, folder: Path, **more: object) -> None:
    sources = estate.task["sources"]
    assert isinstance(sources, list)
    for source in sources:
        source |= {"relay-dir": str(folder / "relay"), "enable-relay": True, **more}


async def purge(source: DatabaseServer) -> None:
    """Have only the newest file left."""
    source.execute("FLUSH BINARY LOGS")
    newest = end_of(source).file
    with anyio.fail_after(PATIENCE):
        while source.execute("SHOW BINARY LOGS")[0][0] != newest:
            # The server keeps files back for a while that its own recovery may need.
            source.execute(f"PURGE BINARY LOGS TO '{newest}'")
            await anyio.sleep(0.1)


@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "starts again"])
async def test_what_a_lock_holds_is_read_from_the_relay(
    estate: ShardedEstate, source: DatabaseServer, restart: bool
) -> None:
    with capture_logs() as logged:
        async with estate.merging():
            estate.ddl("A1", "ADD c INT")
            generation = estate.generation
            assert generation is not None
            for key in range(3):
                estate.insert("A1", f"{key}, 1")
                await estate.caught_up()
                await purge(source)
            source_status = source_statuses(estate.running, generation.counts)[0]
            assert source_status.relay is not None
            assert source_status.relay.held_by == "locks are open"
            assert source_status.relay.files >= 3
            if not restart:
                estate.ddl("A2", "ADD c INT")
                await estate.settled()
        if restart:
            async with estate.merging():
                estate.ddl("A2", "ADD c INT")
                await estate.settled()
    events = [entry["event"] for entry in logged]
    assert "source.purge-near" not in events
    assert "relay.failed" not in events


async def test_a_relay_begins_before_the_source_purges(
    estate: ShardedEstate, source: DatabaseServer, tmp_path: Path
) -> None:
    relay_dir(estate, tmp_path, **{"enable-relay": False})
    with capture_logs() as logged:
        async with estate.merging():
            estate.ddl("A1", "ADD c INT")
            estate.insert("A1", "1, 1")
            await estate.caught_up()
            assert not (tmp_path / "relay").exists()
            source.execute("FLUSH BINARY LOGS")
            with anyio.fail_after(PATIENCE):
                while "relay.begun" not in [entry["event"] for entry in logged]:
                    await anyio.sleep(LOOK_SECONDS)
            for key in range(2, 4):
                estate.insert("A1", f"{key}, 1")
                await estate.caught_up()
                await purge(source)
        async with estate.merging():
            estate.ddl("A2", "ADD c INT")
            await estate.settled()
    assert "source.purge-near" not in [entry["event"] for entry in logged]


async def test_what_a_lock_needs_is_not_deleted(
    estate: ShardedEstate, source: DatabaseServer, tmp_path: Path
) -> None:
    relay_dir(estate, tmp_path, purge={"interval": 1, "remain-space": 1 << 30})
    with capture_logs() as logged:
        async with estate.merging():
            for key in range(2):
                estate.insert("A1", f"{key}")
                await estate.caught_up()
                source.execute("FLUSH BINARY LOGS")
            estate.ddl("A1", "ADD c INT")
            for key in range(2, 4):
                estate.insert("A1", f"{key}, 1")
                await estate.caught_up()
                await purge(source)
            with anyio.fail_after(PATIENCE):
                while "relay.purged" not in [entry["event"] for entry in logged]:
                    await anyio.sleep(LOOK_SECONDS)
            estate.ddl("A2", "ADD c INT")
            await estate.settled()


async def test_a_relay_that_is_not_continued_is_no_reason_to_keep_silent(
    estate: ShardedEstate, source: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logged:
        async with estate.merging():
            estate.ddl("A1", "ADD c INT")
            estate.insert("A1", "1, 1")
            await estate.caught_up()
            await purge(source)

            def full(*_: object) -> int:
                raise OSError("No space left on device")

            monkeypatch.setattr("os.pwrite", full)
            estate.insert("A1", "2, 1")
            source.execute("FLUSH BINARY LOGS")
            with anyio.fail_after(PATIENCE):
                while "source.purge-near" not in [entry["event"] for entry in logged]:
                    await anyio.sleep(LOOK_SECONDS)
            monkeypatch.undo()
            estate.ddl("A2", "ADD c INT")
            await estate.settled()
    assert "relay.failed" in [entry["event"] for entry in logged]

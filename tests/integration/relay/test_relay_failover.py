"""A replica takes over the address of a source that has a relay: each server has its own files."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from actors.reading import purge_watch
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.failover import Estate, FailingOver
from tests.support.tasks.running import PATIENCE, caught_up, fault_of, running, settles


@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
async def test_a_relay_follows_a_failover_and_back_again(
    kind: type[BinlogServer],
    failing_over: FailingOver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    it = failing_over(kind)
    it.values["sources"][0] |= {"relay-dir": str(tmp_path / "relay"), "enable-relay": True}

    with anyio.fail_after(PATIENCE):
        await fault_of(follow(it, it.pair.primary, fail_over=True))
    await follow(it, it.pair.replica)
    it.rebuild()
    await follow(it, it.pair.primary)
    it.pair.until_replicated()
    it.fail_over()
    with capture_logs() as logged:
        await follow(it, it.pair.replica)
    assert [entry for entry in logged if entry["event"].startswith("relay.")] == []
    assert len(folders(tmp_path / "relay" / "a")) == 2


def folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


async def follow(it: Estate, server: DatabaseServer, *, fail_over: bool = False) -> None:
    """Merge some rows until the relay has them too; in the end the task is stopped, or fails."""
    it.write(server)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": server})
        assert generation.running is not None
        relay = generation.running.watch.relays["a"]

        def end() -> str:
            size = relay.size()
            return size.end if size is not None else ""

        await settles(end, str(end_of(server)))
        it.write(server)
        await caught_up(generation, {"a": server})
        it.assert_equal(server)
        if fail_over:
            it.write(server)
            it.fail_over()
            await anyio.sleep_forever()

"""A source with a relay may purge its binlog while it is copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from actors.reading import purge_watch
from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import StartServer
from tests.integration.copy.test_copy_hazards import chunks_of
from tests.integration.copy.test_copy_rules import begun
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE, settles


async def test_a_source_may_purge_while_it_is_copied(
    start_server: StartServer,
    merging_from: Callable[..., Merging],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    merging = merging_from(start_server(MariaDBServer))
    merging.mode = "all"
    chunks_of(merging, rows=50, speed=100)
    for name in merging.sources:
        merging.source_of[name] = {"relay-dir": str(tmp_path / "relay"), "enable-relay": True}
    merging.create("x", "(id INT PRIMARY KEY, n INT)", with_target=False)
    merging.do("INSERT INTO x_1 SELECT seq, seq FROM seq_1_to_400")
    source = merging.source
    with capture_logs() as logged, anyio.fail_after(PATIENCE):
        async with begun(merging, chunks=1) as (generation, stop):
            first = end_of(source).file
            await settles(lambda: first in {path.name for path in tmp_path.rglob("*.0*")}, True)
            while source.execute("SHOW BINARY LOGS")[0][0] <= first:
                assert generation.running is None
                merging.do("INSERT INTO x_1 SELECT MAX(id) + 1, 0 FROM x_1", "FLUSH BINARY LOGS")
                # The server keeps files back for a while that its own recovery may need.
                await anyio.sleep(0.1)
                merging.do(f"PURGE BINARY LOGS TO '{end_of(source).file}'")
            await merging.copied(generation)
            await merging.caught_up(generation)
            stop.set()
    assert not merging.differences()
    assert not {"source.purge-near", "relay.failed"} & {entry["event"] for entry in logged}

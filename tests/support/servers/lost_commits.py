"""A server that loses its last commits, as by a crash with relaxed durability or a failover."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replicator.sandbox.server import DatabaseServer, give_to_server


class Moment:
    """What a server had on its disk at one moment: what it would come back with after a crash."""

    def __init__(self, server: DatabaseServer, folder: Path) -> None:
        self._server = server
        self._copy = folder / "moment"
        data = server.folder / "data"
        # While it is frozen nothing is half-way between its memory and its files.
        with _frozen(_pid_of(server)):
            shutil.copytree(data, self._copy, ignore=shutil.ignore_patterns("*.sock", "*.pid"))

    def come_back(self) -> None:
        """Kill the server and start it with what it had then: it loses all later commits."""
        self._server.kill()
        data = self._server.folder / "data"
        shutil.rmtree(data)
        shutil.copytree(self._copy, data)
        give_to_server(data)
        self._server.start()


def _pid_of(server: DatabaseServer) -> int:
    path = Path(server.folder, "data", str(server.execute("SELECT @@pid_file")[0][0]))
    return int(path.read_text())


@contextmanager
def _frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

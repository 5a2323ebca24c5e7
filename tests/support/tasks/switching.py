"""An application that writes to shards until they are read-only, and what it was told is saved."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pymysql
import pymysql.err

from replicator.sandbox.server import DatabaseServer

APP = "app"
"""An account that `read_only` keeps from writing."""


class Application:
    """Writes transactions of one row to shards, one connection for each server.

    ``saved``: by server and table, the ids whose transactions were committed.
    """

    def __init__(
        self, servers: list[DatabaseServer], database: str, tables: tuple[str, ...], rate: float
    ) -> None:
        self._servers = servers
        self._database = database
        self._tables = tables
        self._pause = len(servers) / rate
        self.saved: dict[tuple[int, str], list[int]] = {
            (number, table): [] for number in range(len(servers)) for table in tables
        }
        self.refused = 0
        self.seconds = 0.0
        for server in servers:
            server.execute(
                f"CREATE USER IF NOT EXISTS {APP} IDENTIFIED BY 'app-1'",
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO {APP}",
            )

    @property
    def transactions(self) -> int:
        """The number of committed transactions."""
        return sum(map(len, self.saved.values()))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write until the end of the block."""
        stop = threading.Event()
        begun = time.monotonic()
        with ThreadPoolExecutor(len(self._servers)) as threads:
            done = [threads.submit(self._write, n, stop) for n in range(len(self._servers))]
            try:
                yield
            finally:
                stop.set()
                for one in done:
                    one.result()
                self.seconds += time.monotonic() - begun

    def _write(self, number: int, stop: threading.Event) -> None:
        following = time.monotonic()
        with self._servers[number].connect(
            user=APP, password="app-1", database=self._database, autocommit=True
        ) as connection:
            cursor = connection.cursor()
            while not stop.is_set():
                for place, table in enumerate(self._tables):
                    ids = self.saved[number, table]
                    start = (number * len(self._tables) + place + 500) * 100_000_000
                    row = start + len(ids)
                    try:
                        cursor.execute(f"INSERT INTO {table} (id, name, n) VALUES ({row}, 'a', 0)")
                        ids.append(row)
                    except pymysql.err.MySQLError:
                        self.refused += 1
                    following += self._pause
                    stop.wait(max(0.0, following - time.monotonic()))


def make_writable(servers: list[DatabaseServer]) -> None:
    """Let servers be written to again."""
    for server in servers:
        names = {name for name, _ in server.execute("SHOW GLOBAL VARIABLES LIKE '%read_only'")}
        for name in sorted(names & {"read_only", "super_read_only"}, reverse=True):
            server.execute(f"SET GLOBAL {name} = 0")


def is_writable(server: DatabaseServer) -> bool:
    """Whether ordinary accounts can write."""
    [[value]] = server.execute("SELECT @@GLOBAL.read_only")
    return not int(value)

"""Two sources with shards of a keyed table and of one without a key, changed again and again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pymysql.err

from replicator.mysql.connection.asyncio_connection import is_unavailable
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict

KEYED = "(id BIGINT PRIMARY KEY, name VARCHAR(2000), n INT)"
KEYLESS = "(a INT, b VARCHAR(2000))"
ROWS = 600
"""Rows of one insert: with the batches of `Shards.task`, several batches and buckets."""


class Shards:
    """``t1`` and ``t2`` of every server are shards of ``t`` (with a key), ``bag`` of ``bag``."""

    def __init__(
        self, servers: list[DatabaseServer], target: DatabaseServer, database: str
    ) -> None:
        self.servers = servers
        self.sources = dict(zip("abc", servers, strict=False))
        self.target = target
        self.database = database
        self._changes = 0
        self._columns = 0
        target.execute(
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.t {KEYED}",
            f"CREATE TABLE {database}.bag {KEYLESS}",
        )
        for server in servers:
            server.execute(
                f"CREATE DATABASE {database}",
                f"CREATE TABLE {database}.t1 {KEYED}",
                f"CREATE TABLE {database}.t2 {KEYED}",
                f"CREATE TABLE {database}.bag {KEYLESS}",
            )

    def task(self, **more: Any) -> dict[str, Any]:
        """The task file's values, with batches so small that there are many."""
        values = task_dict(
            self.database,
            self.sources,
            self.target,
            schema=self.database,
            target_schema=self.database,
        )
        return {**values, "writer": {"batch-bytes": "64KiB"}, **more}

    def change(self, *, rows: int = ROWS) -> None:
        """Rows of all kinds on every source, other ones at each call, duplicates without a key."""
        self._changes += 1
        for number, server in enumerate(self.servers):
            with server.connect(database=self.database) as connection:
                for sql in self._statements(number, rows):
                    connection.cursor().execute(sql)

    @contextmanager
    def changing(self, *, rows: int = 60, pause: float = 0.1) -> Iterator[None]:
        """Change on and on in a thread; what a server that is away refuses is left out.

        ``rows`` of one insert; ``pause`` between two rounds in seconds.
        """
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                try:
                    self.change(rows=rows)
                except pymysql.err.OperationalError as error:
                    if not is_unavailable(error):
                        raise
                stop.wait(pause)

        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(work)
            try:
                yield
            finally:
                stop.set()
            done.result()

    def _first_id(self, number: int, shard: int) -> int:
        """The first of a million ids that no other call of `change` uses."""
        return ((number * 2 + shard) * 100_000 + self._changes) * 1_000_000

    def _statements(self, number: int, rows: int) -> list[str]:
        found = []
        for shard in (1, 2):
            start = self._first_id(number, shard)
            values = ",".join(f"({start + i},'row',{i})" for i in range(rows))
            mine = f"id BETWEEN {start} AND {start + 999_999}"
            found += [
                f"INSERT INTO t{shard} (id, name, n) VALUES {values}",
                f"UPDATE t{shard} SET name='new' WHERE n % 3 = 0 AND {mine}",
                f"UPDATE t{shard} SET id = id + 500000 WHERE n % 7 = 0 AND {mine}",
                f"DELETE FROM t{shard} WHERE n % 5 = 0 AND {mine}",
                f"UPDATE t{shard} SET n = n + 1 WHERE n < 100 AND id > {start - 3_000_000}",
            ]
        bag = ",".join(f"({i % 50}, 'x')" for i in range(rows // 4))
        return [
            *found,
            f"INSERT INTO bag (a, b) VALUES {bag}",
            "DELETE FROM bag WHERE a = 7 LIMIT 3",
            "UPDATE bag SET b = 'y' WHERE a = 9 AND b = 'x' LIMIT 2",
        ]

    def change_much(self, *, rows: int) -> None:
        """On every source one transaction of so many rows of 2 KB, with and without a key."""
        self._changes += 1
        for number, server in enumerate(self.servers):
            start = self._first_id(number, 1)
            with server.connect(database=self.database, autocommit=False) as connection:
                cursor = connection.cursor()
                cursor.execute(
                    f"INSERT INTO t1 SELECT {start} + seq, REPEAT('x', 1950), 1"
                    f" FROM seq_1_to_{rows}"
                )
                cursor.execute(
                    "INSERT INTO bag (a, b) SELECT seq % 20, REPEAT('y', 1950)"
                    f" FROM seq_1_to_{rows // 16}"
                )
                connection.commit()

    def alter(self) -> None:
        """Another column for the table without a key, on every source."""
        self._columns += 1
        for server in self.servers:
            server.execute(f"ALTER TABLE {self.database}.bag ADD c{self._columns} INT DEFAULT 5")

    def assert_equal(self) -> None:
        """The target holds exactly what the shards hold together."""
        db = self.database
        shards = [(server, f"{db}.t{n}") for server in self.servers for n in (1, 2)]
        assert rows_of(self.target, f"{db}.t") == union_of(shards)
        bags = [(server, f"{db}.bag") for server in self.servers]
        assert rows_of(self.target, f"{db}.bag") == union_of(bags)

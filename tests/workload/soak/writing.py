"""Threads that write to the shards of a source: rows, and schema changes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from replicator.sandbox.server import DatabaseServer
from tests.workload.soak.estate import Estate, Source
from tests.workload.soak.tables import TABLES, Rows, Table

FIRST_ROWS = 600
"""Number of rows with which each shard begins."""
RETRY_SECONDS = 0.2
PAUSE_SECONDS = (0.0, 0.5)
"""Between the shards of a schema change."""
MADE_ALREADY = frozenset({1054, 1060, 1061, 1091})
"""Errors of a statement that is repeated: unknown or duplicate column, duplicate or unknown key."""
SESSION = ("SET sql_mode = ''", "SET lock_wait_timeout = 20", "SET innodb_lock_wait_timeout = 10")
UNAVAILABLE = (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError)


class RowWriter:
    """Writes rows to all shards of a source until it is told to stop; one thread."""

    def __init__(self, source: Source, shards: int, seed: int, rate: float) -> None:
        self._source = source
        self._random = Random(seed)
        self._pause = 1 / rate
        self._rows = {n: Rows(n, shards, seed * 1_000 + n) for n in source.numbers}
        self.over = threading.Event()
        self.transactions = 0
        self.failed: Counter[int] = Counter()

    def fill(self) -> None:
        """Insert the first rows of all shards."""
        for table in TABLES:
            for number, rows in self._rows.items():
                shard = self._source.shard(table.name, number)
                insert = rows.first(table, shard, FIRST_ROWS)
                self._source.server.execute("SET sql_mode = ''", insert)

    def run(self) -> None:
        """Write one transaction after another, at the rate; connect again whenever that fails."""
        while not self.over.is_set():
            try:
                with self._source.writing:
                    server = self._source.server
                with server.connect(read_timeout=30, write_timeout=30) as connection:
                    self._write(server, connection)
            except UNAVAILABLE as error:
                self._note(error)

    def _write(self, server: DatabaseServer, connection: Connection[Cursor]) -> None:
        with connection.cursor() as cursor:
            for statement in SESSION:
                cursor.execute(statement)
            self._roll_back_prepared(cursor)
            while not self.over.wait(self._pause):
                with self._source.writing:
                    if self._source.server is not server:
                        return
                    offset = self._source.clock
                    cursor.execute(
                        f"SET timestamp = {int(time.time()) + offset if offset else 'DEFAULT'}"
                    )
                    number = self._random.choice(self._source.numbers)
                    table = self._random.choice(TABLES)
                    self._transaction(cursor, table, number)

    def _transaction(self, cursor: Cursor, table: Table, number: int) -> None:
        shard = self._source.shard(table.name, number)
        try:
            for statement in self._rows[number].transaction(table, shard):
                cursor.execute(statement)
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (1205, 1213):
                raise
            self.failed[error.args[0]] += 1
            cursor.execute("ROLLBACK")
            self._roll_back_prepared(cursor)
        self.transactions += 1

    def _roll_back_prepared(self, cursor: Cursor) -> None:
        cursor.execute("XA RECOVER")
        for row in cursor.fetchall():
            name = row[3].decode() if isinstance(row[3], bytes) else str(row[3])
            cursor.execute("XA ROLLBACK %s", (name,))

    def _note(self, error: Exception) -> None:
        self.failed[error.args[0] if error.args and isinstance(error.args[0], int) else 0] += 1
        time.sleep(RETRY_SECONDS)


class SchemaChanger:
    """Lets all shards make a schema change of one table after another; one thread."""

    def __init__(self, estate: Estate, random: Random, every: float) -> None:
        self._estate = estate
        self._random = random
        self._every = every
        self._made: Counter[str] = Counter()
        self.over = threading.Event()
        self.changes = 0

    def run(self) -> None:
        """Make a change in each interval until it is told to stop; finish the last one."""
        due = time.monotonic()
        while not self.over.wait(max(0.0, due - time.monotonic())):
            self._change(self._random.choice([table for table in TABLES if table.changes]))
            self.changes += 1
            due = max(due + self._every, time.monotonic())

    def _change(self, table: Table) -> None:
        texts = table.changes[self._made[table.name] % len(table.changes)]
        self._made[table.name] += 1
        shards = [(s, n) for s in self._estate.sources.values() for n in s.numbers]
        self._random.shuffle(shards)
        for source, number in shards:
            moment = 1_700_000_000 + self._made.total() * 100 + number
            names = {
                "t": source.shard(table.name, number),
                "n": number % 9 + 1,
                "moment": moment,
            }
            self._execute(source, [text.format_map(names) for text in texts])
            self.over.wait(self._random.uniform(*PAUSE_SECONDS))

    def _execute(self, source: Source, statements: list[str]) -> None:
        """Execute the statements, again and again until the server has them."""
        while True:
            try:
                with source.writing:
                    source.server.execute(*SESSION, *statements)
                return
            except pymysql.err.ProgrammingError as error:
                if error.args[0] not in MADE_ALREADY:
                    raise
                return
            except UNAVAILABLE as error:
                if error.args[0] in MADE_ALREADY:
                    return
                time.sleep(RETRY_SECONDS)

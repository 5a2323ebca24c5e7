"""An application that continuously writes to its shards, at a steady rate.

Each writer writes to one schema of a source and remembers the rows that it has made, so it never
reads. Rows also move to shards of the source's other schemas. Writers of one source can therefore
deadlock, which rolls back a transaction as in any application.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from replicator.demo.estate import Estate
from replicator.demo.tables import ENTITIES, SCHEMAS, Entity, sql
from replicator.mysql.errors import is_contention
from replicator.sandbox.server import DatabaseServer

TRANSACTIONS_PER_SECOND = 25.0
"""Transactions per second of one writer."""
"""Lock wait timeout, deadlock: the transaction is undone."""

Place = tuple[str, int]
"""A row of a table with a key: its shard and its id."""


class Workload:
    """Writers on all schemas of all sources, from `start` until `stop`."""

    def __init__(self, estate: Estate, seed: int) -> None:
        self._ending = threading.Event()
        numbers = itertools.count(1)
        self._writers = [
            # The same seed gives the same rows; the rows need not be unpredictable.
            _Writer(server, schema, random.Random(f"{seed} {source} {schema}"), numbers)  # nosec B311
            for source, server in estate.sources.items()
            for schema in SCHEMAS
        ]
        self._threads = [
            threading.Thread(target=writer.work, args=(self._ending,), name=f"writer-{number}")
            for number, writer in enumerate(self._writers)
        ]

    def start(self) -> None:
        """Start the writers."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the writers finish their transactions, and wait until they have. Idempotent."""
        self._ending.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    @property
    def changes(self) -> int:
        """Rows inserted, updated or deleted so far."""
        return sum(writer.changes for writer in self._writers)

    @property
    def transactions(self) -> int:
        """Transactions committed so far."""
        return sum(writer.transactions for writer in self._writers)

    def failure(self) -> Exception | None:
        """Return the error that stopped a writer early, if any."""
        return next((writer.failure for writer in self._writers if writer.failure), None)


class _Writer:
    def __init__(
        self,
        server: DatabaseServer,
        schema: str,
        rng: random.Random,
        numbers: itertools.count[int],
    ) -> None:
        self._server = server
        self._schema = schema
        self._rng = rng
        self._numbers = numbers
        self._rows: dict[str, list[Place]] = {entity.name: [] for entity in ENTITIES}
        self._deeds: list[tuple[int, Callable[[Cursor, Entity], int]]] = [
            (30, self._insert_many),
            (25, self._insert_singly),
            (20, self._update),
            (10, self._delete),
            (7, self._change_keys),
            (8, self._move),
        ]
        self.changes = 0
        self.transactions = 0
        self.failure: Exception | None = None

    def work(self, ending: threading.Event) -> None:
        """Write at the set rate until ``ending`` is set."""
        try:
            with self._server.connect(autocommit=False) as connection:
                while not ending.wait(self._rng.expovariate(TRANSACTIONS_PER_SECOND)):
                    self._transaction(connection)
        except (pymysql.Error, OSError) as error:
            self.failure = error

    def _transaction(self, connection: Connection[Cursor]) -> None:
        entity = self._rng.choices(ENTITIES, (5, 3, 2))[0]
        weights = [weight for weight, _ in self._deeds]
        deed = self._rng.choices(self._deeds, weights)[0][1]
        before = list(self._rows[entity.name])
        try:
            with connection.cursor() as cursor:
                changes = deed(cursor, entity)
            connection.commit()
        except pymysql.err.OperationalError as error:
            if not is_contention(error):
                raise
            connection.rollback()
            self._rows[entity.name] = before
            return
        self.changes += changes
        self.transactions += 1

    def _insert_many(self, cursor: Cursor, entity: Entity) -> int:
        return self._insert(cursor, entity, self._any_shard(entity), self._rng.randint(20, 150))

    def _insert_singly(self, cursor: Cursor, entity: Entity) -> int:
        count = self._rng.randint(1, 3)
        return sum(self._insert(cursor, entity, self._any_shard(entity), 1) for _ in range(count))

    def _insert(self, cursor: Cursor, entity: Entity, table: str, count: int) -> int:
        numbers = list(itertools.islice(self._numbers, count))
        holders = ", ".join(["%s"] * len(entity.columns))
        cursor.executemany(
            sql("INSERT INTO", table, f"({', '.join(entity.columns)}) VALUES ({holders})"),
            [entity.row(self._rng, number) for number in numbers],
        )
        if entity.keyed:
            self._rows[entity.name] += [(table, number) for number in numbers]
        return count

    def _update(self, cursor: Cursor, entity: Entity) -> int:
        change = entity.change(self._rng)
        setting = ", ".join(f"{column} = %s" for column in change)
        if not entity.keyed:
            some = sql("UPDATE", self._any_shard(entity), "SET", setting, "WHERE kind = %s LIMIT 3")
            return cursor.execute(some, (*change.values(), self._kind()))
        picked = self._pick(entity, 20)
        for table, number in picked:
            values = (*change.values(), number)
            cursor.execute(sql("UPDATE", table, "SET", setting, "WHERE id = %s"), values)
        return len(picked)

    def _delete(self, cursor: Cursor, entity: Entity) -> int:
        if not entity.keyed:
            statement = sql("DELETE FROM", self._any_shard(entity), "WHERE kind = %s LIMIT 3")
            return cursor.execute(statement, (self._kind(),))
        picked = self._pick(entity, 10)
        for table, number in picked:
            cursor.execute(sql("DELETE FROM", table, "WHERE id = %s"), (number,))
        self._forget(entity, picked)
        return len(picked)

    def _change_keys(self, cursor: Cursor, entity: Entity) -> int:
        picked = self._pick(entity, 3)
        self._forget(entity, picked)
        for table, number in picked:
            new = next(self._numbers)
            cursor.execute(sql("UPDATE", table, "SET id = %s WHERE id = %s"), (new, number))
            self._rows[entity.name].append((table, new))
        return len(picked)

    def _move(self, cursor: Cursor, entity: Entity) -> int:
        tables = [table for schema in SCHEMAS for table in entity.shard_tables(schema)]
        picked = self._pick(entity, 5)
        self._forget(entity, picked)
        columns = ", ".join(entity.columns)
        holders = ", ".join(["%s"] * len(entity.columns))
        for table, number in picked:
            new = self._rng.choice([other for other in tables if other != table])
            cursor.execute(sql("SELECT", columns, "FROM", table, "WHERE id = %s"), (number,))
            (row,) = cursor.fetchall()
            steps: list[tuple[str, tuple[object, ...]]] = [
                (sql("DELETE FROM", table, "WHERE id = %s"), (number,)),
                (sql("INSERT INTO", new, f"({columns}) VALUES ({holders})"), row),
            ]
            if self._rng.random() < 0.5:
                steps.reverse()
            for statement, arguments in steps:
                cursor.execute(statement, arguments)
            self._rows[entity.name].append((new, number))
        return 2 * len(picked)

    def _any_shard(self, entity: Entity) -> str:
        return self._rng.choice(entity.shard_tables(self._schema))

    def _kind(self) -> str:
        return self._rng.choice(("click", "view", "buy"))

    def _pick(self, entity: Entity, most: int) -> list[Place]:
        rows = self._rows[entity.name]
        return self._rng.sample(rows, min(len(rows), self._rng.randint(1, most)))

    def _forget(self, entity: Entity, picked: list[Place]) -> None:
        gone = set(picked)
        self._rows[entity.name] = [row for row in self._rows[entity.name] if row not in gone]

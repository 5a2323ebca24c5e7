"""Tables of every shape, and transactions that keep changing them, for any number of shards."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from replicator.sandbox.server import DatabaseServer

Statements = list[str]
Change = Callable[[random.Random, str, int], Statements]
"""(random numbers, shard, first of its keys) -> the statements of one transaction."""

SPAN = 1_000_000
"""Keys of one shard: no two shards hold the same."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A table: its columns, the values of its n-th row, and what changes it."""

    columns: str
    row: Callable[[int], str]
    change: Change


def _key(random_: random.Random, first: int, rows: int = 200) -> int:
    return first + random_.randrange(1, rows)


def _keyed(r: random.Random, t: str, first: int) -> Statements:
    a, b, c = (_key(r, first) for _ in range(3))
    return [
        f"UPDATE {t} SET n = n + 1, s = REPEAT('ü', {r.randrange(20)}) WHERE id BETWEEN {a}"
        f" AND {a + 5}",
        f"UPDATE IGNORE {t} SET id = {b} WHERE id = {a}",
        f"DELETE FROM {t} WHERE id = {c}",
        f"REPLACE INTO {t} VALUES ({_key(r, first, 400)}, {r.randrange(99)}, 'r')",
    ]


def _swap(r: random.Random, t: str, first: int) -> Statements:
    a, b = _key(r, first), _key(r, first)
    return [
        f"SELECT MAX(IF(id = {a}, u, 0)), MAX(IF(id = {b}, u, 0)) INTO @x, @y FROM {t}"
        f" WHERE id IN ({a}, {b})",
        f"UPDATE {t} SET u = -{a} WHERE id = {a} AND @x AND @y AND {a} <> {b}",
        f"UPDATE {t} SET u = @x WHERE id = {b} AND @x AND @y AND {a} <> {b}",
        f"UPDATE {t} SET u = @y WHERE id = {a} AND @x AND @y AND {a} <> {b}",
        f"UPDATE IGNORE {t} SET id = {_key(r, first, 300)} WHERE id = {_key(r, first)}",
    ]


def _moving(r: random.Random, t: str, first: int) -> Statements:
    # All shards of a source share the keys of the first.
    number = t[-1]
    other = t[:-1] + ("2" if number == "1" else "1")
    first -= SPAN if number == "2" else 0
    key = _key(r, first)
    there = f"INSERT IGNORE INTO {other} SELECT id, n + 1 FROM {t} WHERE id = {key}"
    if r.random() < 0.5:
        return [there, f"DELETE FROM {t} WHERE id = {key}"]
    return [
        f"SET @n = (SELECT n FROM {t} WHERE id = {key})",
        f"DELETE FROM {t} WHERE id = {key}",
        f"INSERT INTO {other} SELECT {key}, @n FROM (SELECT 1 AS one) AS x WHERE @n IS NOT NULL",
    ]


def _bag(r: random.Random, t: str, first: int) -> Statements:
    a = r.randrange(20)
    return [
        f"INSERT INTO {t} VALUES ({a}, 'x'), ({a}, 'x'), ({a}, NULL)",
        f"DELETE FROM {t} WHERE a = {r.randrange(20)} LIMIT 2",
        f"UPDATE {t} SET b = 'y' WHERE a = {r.randrange(20)} LIMIT 2",
    ]


def _maybe(r: random.Random, t: str, first: int) -> Statements:
    a = _key(r, first)
    return [
        f"INSERT IGNORE INTO {t} VALUES (NULL, 1), ({a}, NULL), ({a}, 1)",
        f"UPDATE IGNORE {t} SET a = NULL WHERE a = {_key(r, first)} LIMIT 1",
        f"DELETE FROM {t} WHERE a IS NULL LIMIT 1",
    ]


def _uniq(r: random.Random, t: str, first: int) -> Statements:
    return [
        f"REPLACE INTO {t} VALUES ('k{_key(r, first)}', {r.randrange(99)})",
        f"UPDATE IGNORE {t} SET a = 'k{_key(r, first)}' WHERE a = 'k{_key(r, first)}'",
        f"DELETE FROM {t} WHERE a = 'k{_key(r, first)}'",
    ]


def _bytes(r: random.Random, t: str, first: int) -> Statements:
    return _of_key(t, r.randrange(99), *(_bytes_key(_key(r, first)) for _ in range(4)))


def _fixed(r: random.Random, t: str, first: int) -> Statements:
    return _of_key(t, r.randrange(99), *(_fixed_key(_key(r, first)) for _ in range(4)))


def _of_key(t: str, n: int, one: str, two: str, three: str, four: str) -> Statements:
    return [
        f"REPLACE INTO {t} VALUES ({one}, {n})",
        f"UPDATE IGNORE {t} SET k = {two} WHERE k = {three}",
        f"DELETE FROM {t} WHERE k = {four}",
    ]


def _bytes_key(n: int) -> str:
    # Keys of the same number differ in how many zero bytes they end with.
    return f"x'{n // 4 * 4:08x}{'00' * (n % 4)}'"


def _fixed_key(n: int) -> str:
    return f"x'{n:08x}0000'"


def _pair(r: random.Random, t: str, first: int) -> Statements:
    a, b = (_key(r, first) for _ in range(2))
    return [
        f"REPLACE INTO {t} VALUES ({a // 10}, '{a % 10}', 1)",
        f"UPDATE IGNORE {t} SET a = {b // 10} WHERE a = {a // 10} AND b = '{b % 10}'",
        f"DELETE FROM {t} WHERE a = {_key(r, first) // 10} AND b = '{a % 10}'",
    ]


def _words(r: random.Random, t: str, first: int) -> Statements:
    a, b = (_key(r, first) for _ in range(2))
    return [
        f"UPDATE {t} SET k = UPPER(k) WHERE k = 'ä{a}'",
        f"UPDATE {t} SET k = LOWER(k), n = n + 1 WHERE k = 'ä{b}'",
        f"UPDATE IGNORE {t} SET k = 'ä{a}' WHERE k = 'ä{b}'",
        f"REPLACE INTO {t} VALUES ('Ä{_key(r, first)}', 1)",
    ]


SHAPES: Mapping[str, Shape] = {
    "keyed": Shape("id BIGINT PRIMARY KEY, n INT, s VARCHAR(99)", lambda n: f"{n},0,'s'", _keyed),
    "swap": Shape("id INT PRIMARY KEY, u INT, UNIQUE KEY u (u)", lambda n: f"{n},{n}", _swap),
    "moving": Shape("id INT PRIMARY KEY, n INT", lambda n: f"{n},0", _moving),
    "bag": Shape("a INT, b VARCHAR(9)", lambda n: f"{n % 20},'x'", _bag),
    "maybe": Shape("a INT, b INT, UNIQUE KEY ab (a, b)", lambda n: f"{n},1", _maybe),
    "uniq": Shape("a VARCHAR(20) NOT NULL UNIQUE, b INT", lambda n: f"'k{n}',1", _uniq),
    "fixed": Shape("k BINARY(6) PRIMARY KEY, n INT", lambda n: f"{_fixed_key(n)},0", _fixed),
    "bytes": Shape("k VARBINARY(9) PRIMARY KEY, n INT", lambda n: f"{_bytes_key(n)},0", _bytes),
    "pair": Shape(
        "a INT, b VARCHAR(9), n INT, PRIMARY KEY (a, b)",
        lambda n: f"{n // 10},'{n % 10}',0",
        _pair,
    ),
    "words": Shape(
        "k VARCHAR(30) CHARACTER SET utf8mb4 PRIMARY KEY, n INT", lambda n: f"'ä{n}',0", _words
    ),
}
"""By table; the shards of ``x`` are ``x_1`` and ``x_2``."""


def first_key(source: int, shard: int) -> int:
    """The first key of a shard (1 or 2) of a source, counted from 0."""
    return (2 * source + shard) * SPAN


def fill(server: DatabaseServer, database: str, source: int, rows: int) -> None:
    """Give every shard so many rows."""
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        for name, shape in SHAPES.items():
            for shard in (1, 2):
                first = first_key(source, shard)
                if name == "moving":
                    first = first_key(source, 1) + (shard - 1) * rows
                values = ",".join(f"({shape.row(first + n)})" for n in range(1, rows + 1))
                cursor.execute(f"INSERT INTO {name}_{shard} VALUES {values}")


class Writers:
    """One thread per source that runs random transactions on all tables until told to end."""

    def __init__(self, sources: Mapping[str, DatabaseServer], database: str, seed: int) -> None:
        self._sources = sources
        self._database = database
        self._seed = seed
        self._stop = threading.Event()
        self.transactions = 0

    @contextmanager
    def running(self, pause: float) -> Iterator[Writers]:
        """Write during the block, resting ``pause`` seconds after each round over all tables."""
        with ThreadPoolExecutor(len(self._sources)) as threads:
            work = [
                threads.submit(self._write, number, server, pause)
                for number, server in enumerate(self._sources.values())
            ]
            try:
                yield self
            finally:
                self._stop.set()
            for done in work:
                done.result()

    def _write(self, number: int, server: DatabaseServer, pause: float) -> None:
        numbers = random.Random(self._seed + number)
        with server.connect(database=self._database, autocommit=False) as connection:
            connection.cursor().execute("SET NAMES utf8mb4")
            while not self._stop.is_set():
                for name, shape in SHAPES.items():
                    shard = numbers.choice((1, 2))
                    first = first_key(number, shard)
                    self._transaction(connection, shape.change(numbers, f"{name}_{shard}", first))
                self._stop.wait(pause)

    def _transaction(self, connection: Any, statements: Statements) -> None:
        with connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
        connection.commit()
        self.transactions += 1

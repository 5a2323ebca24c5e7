"""What is written to the source: the shards, their rows, and the same rows as a file to load."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pymysql.constants import CLIENT

from replicator.sandbox.server import DatabaseServer

SCHEMA = "shard"
TARGET_SCHEMA = "merged"
ROWS_PER_INSERT = 100
_ID_RANGE = 100_000_000
"""Each shard has the ids from its number times this on."""


@dataclass(frozen=True, slots=True)
class Table:
    """A sharded table: its columns, and in how many shards it comes."""

    name: str
    columns: str
    shards: int

    def shard_names(self) -> list[str]:
        """The tables on the source."""
        return [f"{SCHEMA}.{self.name}_{number}" for number in range(self.shards)]

    def create_shards(self, server: DatabaseServer) -> None:
        """Make the empty shards anew."""
        server.execute(
            f"CREATE DATABASE IF NOT EXISTS {SCHEMA}",
            *(
                sql
                for name in self.shard_names()
                for sql in (f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} {self.columns}")
            ),
        )

    def create_target(self, server: DatabaseServer) -> None:
        """Make the empty merged table anew."""
        server.execute(
            f"CREATE DATABASE IF NOT EXISTS {TARGET_SCHEMA}",
            f"DROP TABLE IF EXISTS {TARGET_SCHEMA}.{self.name}",
            f"CREATE TABLE {TARGET_SCHEMA}.{self.name} {self.columns}",
        )


ORDERS = Table(
    "orders",
    "(id INT NOT NULL PRIMARY KEY, customer INT NOT NULL, quantity SMALLINT UNSIGNED,"
    " status VARCHAR(20) NOT NULL, price DECIMAL(12,2) NOT NULL, created DATETIME NOT NULL,"
    " weight DOUBLE, name VARCHAR(100) NOT NULL, note TEXT)",
    shards=4,
)
ACCOUNTS = Table(
    "sbtest",
    "(id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',"
    " pad CHAR(60) NOT NULL DEFAULT '', KEY k (k))",
    shards=2,
)
"""The table of sysbench, in shards with ids of their own."""


def write_orders(server: DatabaseServer, rows: int, file: Path) -> int:
    """Insert orders 100 at a time, in turn into the shards; the same rows as lines into a file.

    Returns how many rows there are.
    """
    written = 0
    with (
        server.connect(database=SCHEMA) as connection,
        connection.cursor() as cursor,
        file.open("w") as lines,
    ):
        for insert in range(-(-rows // ROWS_PER_INSERT)):
            shard = insert % ORDERS.shards
            first = shard * _ID_RANGE + insert * ROWS_PER_INSERT
            orders = [_order(first + n) for n in range(ROWS_PER_INSERT)]
            values = "),(".join("'" + "','".join(order) + "'" for order in orders)
            cursor.execute(f"INSERT INTO {ORDERS.name}_{shard} VALUES ({values})")
            lines.writelines("\t".join(order) + "\n" for order in orders)
            written += ROWS_PER_INSERT
    return written


def _order(number: int) -> tuple[str, ...]:
    """One row as texts; the same for the same number, and with nothing to escape."""
    mixed = number * 2654435761 % 4294967296
    second, minute, hour = mixed % 60, mixed // 60 % 60, mixed // 3600 % 24
    date = f"2024-{mixed % 12 + 1:02d}-{mixed // 7 % 28 + 1:02d}"
    return (
        str(number),
        str(mixed % 1_000_000),
        str(mixed % 1000),
        ("new", "paid", "packed", "shipped", "returned")[mixed % 5],
        f"{mixed % 10_000_000 / 100:.2f}",
        f"{date} {hour:02d}:{minute:02d}:{second:02d}",
        repr(mixed / 4096),
        f"Customer é {mixed:x}",
        f"order {number}, to be left at the door of house {mixed % 997}" * (mixed % 3),
    )


def fill_accounts(servers_and_tables: list[tuple[DatabaseServer, str, int]], rows: int) -> None:
    """Fill tables with accounts: (server, table, shard whose rows it gets) each."""
    for server, table, shard in servers_and_tables:
        with server.connect() as connection, connection.cursor() as cursor:
            randomness = random.Random(shard)
            for first in range(0, rows, 500):
                accounts = [_account(shard * _ID_RANGE + first + n, randomness) for n in range(500)]
                cursor.execute(f"INSERT INTO {table} VALUES " + ",".join(accounts))


def write_accounts(server: DatabaseServer, rows: int, transactions: int) -> int:
    """Change accounts in small transactions; returns how many rows were changed.

    A transaction is that of sysbench's oltp_write_only: an update of an indexed column, an
    update of another one, a delete, and an insert of the deleted row's key.
    """
    with (
        server.connect(
            database=SCHEMA, client_flag=CLIENT.MULTI_STATEMENTS, autocommit=False
        ) as connection,
        connection.cursor() as cursor,
    ):
        for statements in _transactions(rows, transactions):
            cursor.execute(statements)
            while cursor.nextset():
                pass
    return 4 * transactions


def _transactions(rows: int, count: int) -> Iterator[str]:
    randomness = random.Random(7)
    for number in range(count):
        shard = number % ACCOUNTS.shards
        table = f"{ACCOUNTS.name}_{shard}"
        # Three different rows, so that each statement changes exactly one.
        one, two, three = (shard * _ID_RANGE + n for n in randomness.sample(range(rows), 3))
        yield (
            f"UPDATE {table} SET k=k+1 WHERE id={one};"
            f"UPDATE {table} SET c='{_digits(randomness, 10)}' WHERE id={two};"
            f"DELETE FROM {table} WHERE id={three};"
            f"INSERT INTO {table} VALUES {_account(three, randomness)};"
            "COMMIT"
        )


def _account(number: int, randomness: random.Random) -> str:
    k = randomness.randrange(1_000_000)
    return f"({number},{k},'{_digits(randomness, 10)}','{_digits(randomness, 5)}')"


def _digits(randomness: random.Random, groups: int) -> str:
    text = f"{randomness.randrange(10 ** (11 * groups)):0{11 * groups}d}"
    return "-".join(text[at : at + 11] for at in range(0, len(text), 11))

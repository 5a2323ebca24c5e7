"""The table of sysbench and the transactions of its oltp_write_only, in shards."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from pymysql.constants import CLIENT

from benchmarks.estate import Backlog, Estate, Shard, Table
from replicator.sandbox.server import DatabaseServer

_KEYS_OF_A_SHARD = 100_000_000
_ROWS_PER_INSERT = 500
ROWS_PER_TRANSACTION = 4

COLUMNS = (
    "(id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',"
    " pad CHAR(60) NOT NULL DEFAULT '', KEY k (k))"
)


def accounts(shards: int) -> Table:
    """The table, in so many shards at each source."""
    return Table("sbtest", COLUMNS, shards)


def fill_shards(estate: Estate, rows: int) -> None:
    """Fill each shard with so many accounts."""
    for shard in estate.shards():
        _fill(shard.server, shard.name, shard.number, rows)


def fill_target(estate: Estate, target: DatabaseServer, rows: int) -> None:
    """Fill the merged table as `fill_shards` has filled the shards."""
    for shard in estate.shards():
        _fill(target, shard.table.merged, shard.number, rows)


def write_accounts(estate: Estate, rows: int, transactions: int) -> Backlog:
    """Make and fill the shards, then change ``rows`` accounts of each in small transactions.

    A transaction is that of sysbench's oltp_write_only: an update of an indexed column, an
    update of another one, a delete, and an insert of the deleted row's key.
    """
    estate.create_shards()
    fill_shards(estate, rows)
    starts = estate.ends()
    shards = estate.shards()
    for server in estate.servers:
        own = [shard for shard in shards if shard.server is server]
        with (
            server.connect(client_flag=CLIENT.MULTI_STATEMENTS, autocommit=False) as connection,
            connection.cursor() as cursor,
        ):
            for statements in _transactions(own, rows, transactions // len(estate.servers)):
                cursor.execute(statements)
                while cursor.nextset():
                    pass
    count = transactions // len(estate.servers) * len(estate.servers)
    return Backlog(estate, starts, estate.ends(), ROWS_PER_TRANSACTION * count)


def _fill(server: DatabaseServer, table: str, shard: int, rows: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        randomness = random.Random(shard)
        for first in range(0, rows, _ROWS_PER_INSERT):
            numbers = range(first, min(first + _ROWS_PER_INSERT, rows))
            values = [_account(shard * _KEYS_OF_A_SHARD + n, randomness) for n in numbers]
            cursor.execute(f"INSERT INTO {table} VALUES " + ",".join(values))


def _transactions(shards: Sequence[Shard], rows: int, count: int) -> Iterator[str]:
    randomness = random.Random(7)
    for number in range(count):
        shard = shards[number % len(shards)]
        first = shard.number * _KEYS_OF_A_SHARD
        # Three different rows, so that each statement changes exactly one.
        one, two, three = (first + n for n in randomness.sample(range(rows), 3))
        yield (
            f"UPDATE {shard.name} SET k=k+1 WHERE id={one};"
            f"UPDATE {shard.name} SET c='{_digits(randomness, 10)}' WHERE id={two};"
            f"DELETE FROM {shard.name} WHERE id={three};"
            f"INSERT INTO {shard.name} VALUES {_account(three, randomness)};"
            "COMMIT"
        )


def _account(number: int, randomness: random.Random) -> str:
    k = randomness.randrange(1_000_000)
    return f"({number},{k},'{_digits(randomness, 10)}','{_digits(randomness, 5)}')"


def _digits(randomness: random.Random, groups: int) -> str:
    text = f"{randomness.randrange(10 ** (11 * groups)):0{11 * groups}d}"
    return "-".join(text[at : at + 11] for at in range(0, len(text), 11))

"""Many updates of few rows: each a transaction of its own, made by the source itself."""

from __future__ import annotations

from benchmarks.estate import Backlog, Estate, Table
from replicator.sandbox.server import DatabaseServer

COLUMNS = (
    "(id INT NOT NULL PRIMARY KEY, hits INT NOT NULL, seen DATETIME(6) NOT NULL,"
    " page VARCHAR(100) NOT NULL)"
)
_PROCEDURES = "bench"
_KEYS_OF_A_SHARD = 100_000_000
_FIRST_SEEN = "2024-01-01 00:00:00"


def counters(shards: int) -> Table:
    """The table, in so many shards at each source."""
    return Table("counter", COLUMNS, shards)


def fill_counters(server: DatabaseServer, table: str, shard: int, keys: int) -> None:
    """Fill a table with the counters of a shard."""
    server.execute(
        f"INSERT INTO {table} SELECT {shard * _KEYS_OF_A_SHARD} + seq, 0, '{_FIRST_SEEN}',"
        f" CONCAT('/products/', seq, '/details') FROM {_PROCEDURES}.seq_1_to_{keys}"
    )


def release_slots(server: DatabaseServer) -> None:
    """The database that `fill_counters` and the procedures need, which is not replicated."""
    server.execute(f"CREATE DATABASE IF NOT EXISTS {_PROCEDURES}")


def write_updates(estate: Estate, keys: int, updates: int) -> Backlog:
    """Make the shards, ``keys`` rows in all, and count ``updates`` times in them, in turn.

    A stored procedure does it: a client would take longer than all that is measured.
    """
    estate.create_shards()
    (server,) = estate.servers
    release_slots(server)
    shards = estate.shards()
    each = keys // len(shards)
    for shard in shards:
        fill_counters(server, shard.name, shard.number, each)
    steps = " ".join(
        f"UPDATE {shard.name} SET hits=hits+1, seen=seen+INTERVAL n MICROSECOND"
        f" WHERE id={shard.number * _KEYS_OF_A_SHARD} + 1 + (n * 7919) % {each};"
        for shard in shards
    )
    server.execute(
        f"CREATE OR REPLACE PROCEDURE {_PROCEDURES}.count_up(times INT) BEGIN DECLARE n INT"
        f" DEFAULT 0; WHILE n < times DO {steps} SET n = n + 1; END WHILE; END"
    )
    starts = estate.ends()
    server.execute(f"CALL {_PROCEDURES}.count_up({updates // len(shards)})")
    return Backlog(estate, starts, estate.ends(), updates // len(shards) * len(shards))

"""So many small transactions a second, made by the source itself.

A client that keeps time would take a good part of a core from what is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.errors import BenchmarkError
from replicator.sandbox.server import DatabaseServer

COLUMNS = "customer,quantity,status,price,created,weight,name,note"
_TOOLS = "bench"
_FIRST_ID = 1_900_000_000
"""Below those of the commits that are timed, above those of the rows there."""
_SETTLE_SECONDS = 2.0
_LEAST = 0.9
"""The share of the rate that the source must have reached."""


class Load:
    """What is being written; ``per_second`` is known at the end."""

    def __init__(self) -> None:
        self.per_second = 0.0
        self.failure: Exception | None = None


def create_load(server: DatabaseServer, shards: Sequence[str]) -> None:
    """Make the procedure that inserts orders into the shards, in turn, one a transaction."""
    inserts = " ".join(
        f"WHEN {place} THEN INSERT INTO {name} (id,{COLUMNS}) VALUES"
        f" ({_FIRST_ID} + n,n,1,'new',9.99,'2024-01-01',0.5,'load','');"
        for place, name in enumerate(shards)
    )
    server.execute(
        f"CREATE DATABASE IF NOT EXISTS {_TOOLS}",
        f"CREATE OR REPLACE TABLE {_TOOLS}.running (id INT PRIMARY KEY) ENGINE=InnoDB",
        f"INSERT INTO {_TOOLS}.running VALUES (1)",
        f"CREATE OR REPLACE PROCEDURE {_TOOLS}.load_orders(per_second INT) BEGIN"
        " DECLARE n INT DEFAULT 0; DECLARE began DECIMAL(20,6) DEFAULT UNIX_TIMESTAMP(SYSDATE(6));"
        f" WHILE n % 100 > 0 OR EXISTS (SELECT 1 FROM {_TOOLS}.running) DO"
        " IF n < (UNIX_TIMESTAMP(SYSDATE(6)) - began) * per_second THEN"
        f" CASE n % {len(shards)} {inserts} END CASE; SET n = n + 1;"
        " ELSE DO SLEEP(0.001); END IF; END WHILE;"
        " SELECT n / (UNIX_TIMESTAMP(SYSDATE(6)) - began); END",
    )


@contextmanager
def steady_load(server: DatabaseServer, per_second: int) -> Iterator[Load]:
    """Insert so many orders a second until the block ends; the procedure must be there.

    Raises BenchmarkError where the source does not come to that.
    """
    load = Load()

    def run() -> None:
        try:
            rows = server.execute(f"CALL {_TOOLS}.load_orders({per_second})")
            load.per_second = float(rows[0][0])
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            load.failure = error

    thread = threading.Thread(target=run)
    thread.start()
    try:
        thread.join(_SETTLE_SECONDS)
        yield load
    finally:
        server.execute(f"DELETE FROM {_TOOLS}.running")
        thread.join()
    if load.failure is not None or load.per_second < _LEAST * per_second:
        raise BenchmarkError(
            f"the source wrote {load.per_second:.0f} transactions/s: {load.failure}"
        )

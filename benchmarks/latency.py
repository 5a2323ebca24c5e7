"""From a commit on the idle source to the row being visible on the target."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Sequence

from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, TARGET_SCHEMA
from replicator.sandbox.server import DatabaseServer

COLUMNS = (
    "customer,quantity,status,price,created,weight,name,note) VALUES"
    " (%s,1,1,'new',9.99,NOW(),0.5,'late','')"
)
_FIRST_ID = 2_000_000_000
_PATIENCE = 30.0
_POLL_SECONDS = 0.0005
"""Between two looks: a loop without any pause would take a core from what it measures."""
_PAUSES = (0.05, 0.25)
"""Between two commits, at random, so that they do not fall into step with anything."""


def latencies(source: DatabaseServer, target: DatabaseServer, commits: int) -> list[float]:
    """Seconds of each of ``commits`` single-row inserts into a shard of the orders."""
    shard = f"{SCHEMA}.orders_0"
    (row,) = source.execute(f"SELECT COALESCE(MAX(id),0) FROM {shard} WHERE id>={_FIRST_ID}")
    first = max(_FIRST_ID, int(str(row[0])) + 1)
    return arrivals(
        source,
        target,
        f"INSERT INTO {shard} (id,{COLUMNS}",
        f"SELECT 1 FROM {TARGET_SCHEMA}.orders WHERE id=%s",
        range(first, first + commits),
    )


def arrivals(
    source: DatabaseServer,
    target: DatabaseServer,
    insert: str,
    select: str,
    keys: Iterable[int],
    others: Sequence[str] = (),
) -> list[float]:
    """Seconds from each commit of ``insert`` until ``select`` finds its row, key by key.

    Both take the key as their one parameter, as do ``others``: commits on the source before it,
    which nobody waits for. Raises BenchmarkError for a row that does not arrive.
    """
    randomness = random.Random(1)
    measured = []
    with (
        source.connect() as writing,
        writing.cursor() as writer,
        target.connect() as reading,
        reading.cursor() as reader,
    ):
        for key in keys:
            time.sleep(randomness.uniform(*_PAUSES))
            for other in others:
                writer.execute(other, (key,))
            writer.execute(insert, (key,))
            committed = time.monotonic()
            while not reader.execute(select, (key,)):
                if time.monotonic() - committed > _PATIENCE:
                    raise BenchmarkError(f"row {key} did not arrive in {_PATIENCE:.0f} s")
                time.sleep(_POLL_SECONDS)
            measured.append(time.monotonic() - committed)
    return measured


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all values are not above (nearest rank)."""
    return sorted(values)[math.ceil(share * len(values)) - 1]

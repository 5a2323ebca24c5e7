"""From a commit on the idle source to the row being visible on the target."""

from __future__ import annotations

import math
import random
import time

from benchmarks.task import BenchmarkError
from benchmarks.workloads import SCHEMA, TARGET_SCHEMA
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
    randomness = random.Random(1)
    insert = f"INSERT INTO {SCHEMA}.orders_0 (id,{COLUMNS}"
    select = f"SELECT 1 FROM {TARGET_SCHEMA}.orders WHERE id=%s"
    measured = []
    with (
        source.connect() as writing,
        writing.cursor() as writer,
        target.connect() as reading,
        reading.cursor() as reader,
    ):
        writer.execute(f"SELECT COALESCE(MAX(id),0) FROM {SCHEMA}.orders_0 WHERE id>={_FIRST_ID}")
        first = max(_FIRST_ID, int((writer.fetchone() or (0,))[0]) + 1)
        for number in range(first, first + commits):
            time.sleep(randomness.uniform(*_PAUSES))
            writer.execute(insert, (number,))
            committed = time.monotonic()
            while not reader.execute(select, (number,)):
                if time.monotonic() - committed > _PATIENCE:
                    raise BenchmarkError(f"row {number} did not arrive in {_PATIENCE:.0f} s")
                time.sleep(_POLL_SECONDS)
            measured.append(time.monotonic() - committed)
    return measured


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all values are not above (nearest rank)."""
    return sorted(values)[math.ceil(share * len(values)) - 1]

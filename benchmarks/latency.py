"""From a commit on the idle source to the row being visible on the target."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count, takewhile

from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, TARGET_SCHEMA
from replicator.sandbox.server import DatabaseServer

COLUMNS = (
    "customer,quantity,status,price,created,weight,name,note) VALUES"
    " (%s,1,1,'new',9.99,NOW(),0.5,'late','')"
)
_SHARD = f"{SCHEMA}.orders_0"
_INSERT = f"INSERT INTO {_SHARD} (id,{COLUMNS}"
_SELECT = f"SELECT 1 FROM {TARGET_SCHEMA}.orders WHERE id=%s"
_FIRST_ID = 2_000_000_000
_PATIENCE = 30.0
_POLL_SECONDS = 0.0005
"""Between two looks: a loop without any pause would take a core from what it measures."""
_PAUSES = (0.05, 0.25)
"""Between two commits, at random, so that they do not fall into step with anything."""
_WRITER_PAUSE = 0.02
"""Seconds between two commits whose own time is measured."""


def latencies(source: DatabaseServer, target: DatabaseServer, commits: int) -> list[float]:
    """Seconds of each of ``commits`` single-row inserts into a shard of the orders."""
    first = _first_id(source)
    return arrivals(source, target, _INSERT, _SELECT, range(first, first + commits))


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
    return list(_arrivals(source, target, insert, select, keys, others))


def timed_arrivals(
    source: DatabaseServer, target: DatabaseServer
) -> AbstractContextManager[list[float]]:
    """As `latencies`, in a thread, for as long as the block lasts; the list grows meanwhile."""
    first = _first_id(source)

    def seconds(ended: threading.Event) -> Iterator[float]:
        keys = takewhile(lambda _: not ended.is_set(), count(first))
        return _arrivals(source, target, _INSERT, _SELECT, keys)

    return _in_thread(seconds)


def timed_commits(source: DatabaseServer) -> AbstractContextManager[list[float]]:
    """Seconds of single-row updates at the source, in a thread, for as long as the block lasts."""

    def seconds(ended: threading.Event) -> Iterator[float]:
        with source.connect() as connection, connection.cursor() as writer:
            writer.execute(f"CREATE TABLE {SCHEMA}.beside (id INT PRIMARY KEY, v INT)")
            writer.execute(f"INSERT INTO {SCHEMA}.beside VALUES (1, 0)")
            while not ended.wait(_WRITER_PAUSE):
                began = time.monotonic()
                writer.execute(f"UPDATE {SCHEMA}.beside SET v=v+1 WHERE id=1")
                yield time.monotonic() - began
            writer.execute(f"DROP TABLE {SCHEMA}.beside")

    return _in_thread(seconds)


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all values are not above (nearest rank)."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def _first_id(source: DatabaseServer) -> int:
    """A key above those of earlier commits."""
    (row,) = source.execute(f"SELECT COALESCE(MAX(id),0) FROM {_SHARD} WHERE id>={_FIRST_ID}")
    return max(_FIRST_ID, int(str(row[0])) + 1)


def _arrivals(
    source: DatabaseServer,
    target: DatabaseServer,
    insert: str,
    select: str,
    keys: Iterable[int],
    others: Sequence[str] = (),
) -> Iterator[float]:
    randomness = random.Random(1)
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
            yield time.monotonic() - committed


@contextmanager
def _in_thread(values: Callable[[threading.Event], Iterator[float]]) -> Iterator[list[float]]:
    """Collect values in a thread until the block ends. Raises BenchmarkError if that fails."""
    ended = threading.Event()
    found: list[float] = []
    failures: list[Exception] = []

    def collect() -> None:
        try:
            for value in values(ended):
                found.append(value)  # noqa: PERF402 - others take values from the list meanwhile
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            failures.append(error)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
    if failures:
        raise BenchmarkError(f"not measured: {failures[0]!r}") from failures[0]

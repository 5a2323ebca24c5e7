"""What the benchmark measures beside does the same work, and differences are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.baselines import load_data, replay, replicate
from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, TARGET_SCHEMA, Backlog, Estate, Table
from benchmarks.workloads.accounts import accounts, fill_shards, fill_target, write_accounts
from benchmarks.workloads.hot_keys import counters, fill_counters, release_slots, write_updates
from benchmarks.workloads.large_rows import blobs, wide_rows, write_blobs, write_wide_rows
from benchmarks.workloads.orders import orders, write_orders, write_orders_at_once
from replicator.sandbox.server import DatabaseServer

ROWS = 300


@pytest.fixture
def source(mariadb_source: DatabaseServer) -> Iterator[DatabaseServer]:
    yield mariadb_source
    mariadb_source.execute(f"DROP DATABASE {SCHEMA}", "DROP DATABASE IF EXISTS bench")


@pytest.fixture
def target(mariadb_target: DatabaseServer) -> Iterator[DatabaseServer]:
    yield mariadb_target
    schemas = (SCHEMA, TARGET_SCHEMA, "bench")
    mariadb_target.execute(*(f"DROP DATABASE IF EXISTS {schema}" for schema in schemas))


@pytest.mark.parametrize(
    ("table", "write", "rows", "character_set"),
    [
        (orders(shards=3), write_orders, ROWS, "utf8mb4"),
        (wide_rows(shards=2), write_wide_rows, ROWS, "binary"),
        (blobs(shards=2), write_blobs, 3, "binary"),
    ],
    ids=lambda value: value.name if isinstance(value, Table) else "",
)
def test_the_file_that_is_loaded_has_the_rows_of_the_shards(
    source: DatabaseServer,
    target: DatabaseServer,
    tmp_path: Path,
    table: Table,
    write: Callable[[Estate, int, Path], Backlog],
    rows: int,
    character_set: str,
) -> None:
    estate = Estate((table,), (source,))
    backlog = write(estate, rows, tmp_path / "lines")
    assert backlog.rows == rows
    estate.create_targets(target)
    assert load_data(table, target, tmp_path / "lines", character_set).seconds > 0
    estate.compare(target)
    assert target.execute(f"SELECT COUNT(*) FROM {table.merged}") == ((rows,),)


def test_a_row_that_differs_is_found(
    source: DatabaseServer, target: DatabaseServer, tmp_path: Path
) -> None:
    table = orders(shards=2)
    estate = Estate((table,), (source,))
    write_orders(estate, ROWS, tmp_path / "lines")
    estate.create_targets(target)
    load_data(table, target, tmp_path / "lines")
    target.execute(f"UPDATE {table.merged} SET note='another' ORDER BY id LIMIT 1")
    with pytest.raises(BenchmarkError, match="orders: the shards hold"):
        estate.compare(target)


def assert_same_shards(estate: Estate, copy: Estate) -> None:
    for theirs, ours in zip(copy.shards(), estate.shards(), strict=True):
        sql = f"CHECKSUM TABLE {ours.name}"
        assert theirs.server.execute(sql) == ours.server.execute(sql)


def test_replay_and_replica_bring_small_transactions(
    source: DatabaseServer, target: DatabaseServer
) -> None:
    estate = Estate((accounts(shards=2),), (source,))
    backlog = write_accounts(estate, ROWS, 20)
    assert backlog.rows == 80
    for baseline in (replay, replicate):
        copy = estate.create_shards_at(target)
        fill_shards(copy, ROWS)
        baseline(backlog, target)
        assert_same_shards(estate, copy)


def test_replay_brings_updates_of_few_keys(source: DatabaseServer, target: DatabaseServer) -> None:
    estate = Estate((counters(shards=2),), (source,))
    backlog = write_updates(estate, 20, ROWS)
    release_slots(target)
    copy = estate.create_shards_at(target)
    for shard in copy.shards():
        fill_counters(target, shard.name, shard.number, 10)
    replay(backlog, target)
    assert_same_shards(estate, copy)
    hits = (f"(SELECT SUM(hits) FROM {shard.name})" for shard in estate.shards())
    assert source.execute(f"SELECT {'+'.join(hits)}") == ((ROWS,),)


def test_the_target_is_filled_as_the_shards_are(
    source: DatabaseServer, target: DatabaseServer
) -> None:
    estate = Estate((accounts(shards=2),), (source,))
    estate.create_shards()
    fill_shards(estate, ROWS)
    estate.create_targets(target)
    fill_target(estate, target, ROWS)
    estate.compare(target)


def test_rows_written_at_once_are_one_transaction(source: DatabaseServer) -> None:
    estate = Estate((orders(shards=2),), (source,))
    backlog = write_orders_at_once(estate, ROWS)
    (start,) = backlog.starts
    events = source.execute(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    assert [event[2] for event in events].count("Xid") == 1
    assert source.execute(f"SELECT COUNT(*) FROM {SCHEMA}.orders_0") == ((ROWS,),)

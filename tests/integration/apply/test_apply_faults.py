"""Batches that meet a fault, and batches that come again: every row once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.rows.load_data import probe_load_data
from replicator.downstream.rows.watermark_table import LOW_WATERMARK_BUCKET
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint
from replicator.mysql.connection.address import DatabaseAddress
from replicator.pipeline.apply.apply import frames_of
from replicator.pipeline.apply.batch import BatchResult, WriteOutcome
from replicator.pipeline.apply.pool_work import work_on
from replicator.pipeline.copy.copy_chunk import CopyOutcome, CopySettings, copy_chunk
from replicator.pipeline.copy.copy_plan import CopyChunk, plan_copy
from replicator.pipeline.copy.copy_writing import OnDuplicate
from replicator.pipeline.spark.json_results import from_json
from replicator.pipeline.workers import worker_pool as living_module
from replicator.pipeline.workers.worker_pool import release_slots, worker_pool
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.tidb import TiDBServer
from tests.support.streams.applying import (
    TARGETS,
    TOKEN,
    WRITING_STEPS,
    Merge,
    address_of,
    killed_at,
    structure,
)
from tests.support.streams.row_columns import batch_of
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE


def test_applying_a_batch_again_changes_nothing(merge: Merge) -> None:
    merge.create("v INT, w INT")
    batch = merge.record(
        "INSERT INTO a.t VALUES (1,1),(1,1),(2,NULL)",
        "INSERT INTO b.t VALUES (1,1)",
        "DELETE FROM a.t WHERE v = 1 LIMIT 1",
    )
    assert merge.apply(batch).total("inserted") == 3
    again = merge.apply(batch)
    assert again.total("inserted") == again.total("deleted") == 0
    assert again.total("skipped") == 5
    assert merge.rows() == merge.shards()


def test_replay_after_some_buckets_were_committed(merge: Merge) -> None:
    merge.create("id INT, v INT")
    batch = merge.record(
        *(f"INSERT INTO a.t VALUES ({n % 7}, 1)" for n in range(40)),
        "DELETE FROM a.t WHERE id = 3 LIMIT 2",
        "UPDATE a.t SET v = 2 WHERE id = 4 LIMIT 3",
    )
    # The buckets of these events go ahead of the others.
    (events,) = batch.tables
    first = batch_of(batch.plans, events.between(0, 25))
    merge.apply(first)
    merge.apply(batch)
    merge.apply(batch)
    assert merge.rows() == merge.shards()
    # One bucket has everything, the others nothing.
    merge.target.execute(
        f"UPDATE {merge.settings.watermark_table} SET version=0, transaction_key=0, ordinal=0"
        " WHERE bucket <> 0"
    )
    before = merge.rows()
    again = merge.apply(batch)
    assert again.total("skipped") > 0
    assert len(merge.rows()) > len(before), "the buckets without a watermark do their rows again"


def test_two_writers_of_the_same_batch_at_a_time(
    merge: Merge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both are there, however busy the machine.
    monkeypatch.setattr(living_module, "GATHER_SECONDS", 60.0)
    release_slots(merge.spark)
    merge.create("id INT, v INT")
    batch = merge.record(
        *(f"INSERT INTO a.t SELECT seq % 5, {n} FROM seq_1_to_50" for n in range(20)),
        "DELETE FROM a.t WHERE id = 3",
    )
    kinds = batch.plans.kinds
    share = {plan.target.number: frozenset(range(plan.target.buckets)) for plan in kinds}
    (whole,) = frames_of(batch, [share], merge.settings)
    # Each of two tasks is given all of it, as when one that was given up still writes.
    answers = worker_pool(merge.spark, work_on).ask(
        lambda tasks: [whole] * tasks, 2, sent=lambda: None
    )
    results = [*(from_json(BatchResult, answer) for answer in answers), merge.apply(batch)]
    assert [result.failures for result in results] == [()] * 3
    assert sum(result.total("inserted") for result in results) == 800
    assert merge.rows() == merge.shards()


def test_the_low_watermark_counts_for_every_bucket(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)", "INSERT INTO a.t VALUES (2)")
    merge.target.execute(
        f"INSERT INTO {merge.settings.watermark_table} VALUES"
        f" ('{merge.name}_a', '{merge.name}', 't', {LOW_WATERMARK_BUCKET}, 0,"
        f" {batch.tables[0].transaction[0]}, 1, 0, '', '')"
    )
    assert merge.apply(batch).total("skipped") == 1
    assert merge.rows() == [(2,)]


def test_safe_mode_bears_rows_that_are_there_or_not(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, u INT UNIQUE, v INT")
    batch = merge.record(
        "INSERT INTO a.t VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0)",
        "UPDATE a.t SET u = 20 WHERE id = 2",
        "UPDATE a.t SET u = 2 WHERE id = 1",
        "DELETE FROM a.t WHERE id = 3",
    )
    merge.target.execute(f"INSERT INTO {merge.name}.t VALUES (1, 2, 9), (2, 20, 0)")
    result = merge.apply(batch, safe_until=dict.fromkeys(batch.plans.sources, 1 << 62))
    assert result.failures == ()
    assert result.total("missing") == 0
    assert merge.rows() == merge.shards("a")


def test_an_unreadable_event_keeps_its_target_as_it_was(merge: Merge, path: str) -> None:
    merge.create("id INT PRIMARY KEY, v VARCHAR(20)")
    batch = merge.record("INSERT INTO a.t VALUES (1, 'x')", "INSERT INTO a.t VALUES (2, 'yy')")
    (events,) = batch.tables
    batch = replace(batch, tables=(replace(events, end=events.end - np.array([0, 2])),))
    (failure,) = merge.apply(batch).failures
    assert failure.outcome is WriteOutcome.UNDECODABLE
    assert f"{merge.name}_a.t" in failure.message
    assert merge.rows() == []
    moved = f"SELECT COUNT(*) FROM {merge.settings.watermark_table} WHERE ordinal > 0"
    assert merge.target.execute(moved) == ((0,),)


def test_a_lost_connection_is_opened_again(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    merge.done("INSERT INTO a.t VALUES (1)")
    merge.target.restart()
    merge.done("INSERT INTO a.t VALUES (2)")
    assert merge.rows() == merge.shards("a")


def test_a_target_that_stays_away_is_an_outcome(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)")
    merge.target.stop()
    try:
        (failure,) = merge.apply(batch, patience=0.1).failures
    finally:
        merge.target.start()
    assert failure.outcome is WriteOutcome.UNREACHABLE
    merge.apply(batch)
    assert merge.rows() == [(1,)]


def test_a_chunk_names_the_server_that_is_away(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY", "a")
    name, schema = f"{merge.name}_a", f"{merge.name}_meta"
    chunks = CHUNK_TABLE.qualified(schema, "task")
    merge.target.execute(
        CHUNK_TABLE.create_sql(schema, "task"),
        f"INSERT INTO {chunks} (source, schema_name, table_name, number, state, row_count,"
        f" byte_count, read_at, token) VALUES ('{name}', '{name}', 't', 0, 0, 0, 0, 0, {TOKEN})",
    )
    copied = plan_copy(
        name,
        structure(merge.source, name, "t"),
        "f",
        structure(merge.target, merge.name, "t"),
        0,
    )
    away, there = address_of(merge.source), merge.settings.address
    away = replace(away, port=1)
    for target, source, told in ((away, away, ""), (there, away, name)):
        outcome = copy_chunk(
            CopyChunk(copied, 0, None, None),
            CopySettings(
                target,
                {name: source},
                {name: OnDuplicate.ERROR},
                chunks,
                merge.settings.fence,
                frozenset(),
                load_data=False,
                patience=3.1,
            ),
        )
        assert outcome.outcome is CopyOutcome.UNREACHABLE
        assert outcome.source == told
        assert outcome.waited >= 1


@pytest.mark.also_tidb
def test_targets_of_a_task_do_not_wait_for_one_that_is_locked(merge: Merge) -> None:
    for table in TARGETS:
        merge.create("id INT PRIMARY KEY", table=table)
    batch = merge.record(*(f"INSERT INTO a.{table} VALUES (1)" for table in TARGETS))
    waiting, *others = TARGETS
    with ThreadPoolExecutor(1) as applying, merge.target.connect(autocommit=False) as one:
        with one.cursor() as cursor:
            cursor.execute(f"INSERT INTO {merge.name}.{waiting} VALUES (1)")
        result = applying.submit(merge.apply, batch)
        deadline = time.monotonic() + PATIENCE
        while any(merge.rows(table) == [] for table in others):
            assert time.monotonic() < deadline
            time.sleep(LOOK_SECONDS)
        assert not result.done()
        one.rollback()
        assert result.result().failures == ()
    assert {table: merge.rows(table) for table in TARGETS} == {key: [(1,)] for key in TARGETS}


@pytest.mark.also_tidb
def test_a_target_that_stays_locked_is_an_outcome(merge: Merge) -> None:
    for table in TARGETS:
        merge.create("id INT PRIMARY KEY", table=table)
    batch = merge.record(*(f"INSERT INTO a.{table} VALUES (1)" for table in TARGETS))
    first, *others = TARGETS
    with merge.target.connect(autocommit=False) as one, one.cursor() as cursor:
        cursor.execute(f"INSERT INTO {merge.name}.{first} VALUES (1)")
        (failure,) = merge.apply(batch, address=impatient(merge)).failures
        one.rollback()
    assert (failure.outcome, failure.target) == (WriteOutcome.LOCKED, TARGETS[first])
    assert {table: merge.rows(table) for table in others} == {key: [(1,)] for key in others}
    assert merge.rows(first) == []
    assert merge.apply(batch).failures == ()
    assert merge.rows(first) == [(1,)]


def test_a_target_that_is_locked_as_a_whole_is_the_same_outcome(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)")
    with merge.target.connect() as one, one.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {merge.name}.t READ")
        (failure,) = merge.apply(batch, address=impatient(merge)).failures
    assert failure.outcome is WriteOutcome.LOCKED
    assert merge.apply(batch).failures == ()
    assert merge.rows() == [(1,)]


def impatient(merge: Merge) -> DatabaseAddress:
    """Sessions that wait for a second for what another one has locked."""
    limits = ("innodb_lock_wait_timeout", "1"), ("lock_wait_timeout", "1")
    return replace(merge.settings.address, session=limits)


def test_several_targets_that_stay_away_are_applied_by_the_next_batch(merge: Merge) -> None:
    for table in TARGETS:
        merge.create("id INT PRIMARY KEY, v INT", table=table)
        merge.done(f"INSERT INTO a.{table} VALUES (1, 1)")
    batch = merge.record(
        *(f"INSERT INTO a.{table} VALUES (2, 1)" for table in TARGETS),
        *(f"UPDATE a.{table} SET v = v + 1 WHERE id = 1" for table in TARGETS),
    )
    merge.target.stop()
    try:
        failures = merge.apply(batch, patience=0.1).failures
    finally:
        merge.target.start()
    assert {failure.outcome for failure in failures} == {WriteOutcome.UNREACHABLE}
    assert merge.apply(batch).failures == ()
    for table in TARGETS:
        assert merge.rows(table) == [(1, 2), (2, 1)]


@pytest.mark.also_tidb
def test_the_probe_finds_whether_load_data_is_transactional(target_server: DatabaseServer) -> None:
    with closing(Session(address_of(target_server))) as session:
        # TiDB has committed the rows by the end of the statement.
        assert probe_load_data(session, "mysql") is not isinstance(target_server, TiDBServer)
        assert session.rows(b"SHOW TABLES IN mysql LIKE 'replicator%'") == ()


@pytest.mark.slow
@pytest.mark.parametrize("point", WRITING_STEPS)
def test_a_driver_killed_by_a_failpoint_in_an_executor(
    merge: Merge, point: Failpoint, tmp_path: Path
) -> None:
    merge.create("id INT, v INT")
    batch = merge.record(
        *(f"INSERT INTO a.t VALUES ({n % 9}, 1), ({n}, 2)" for n in range(30)),
        "DELETE FROM a.t WHERE id = 3 LIMIT 2",
        "INSERT INTO b.t SELECT * FROM a.t",
    )
    killed_at(point, batch, merge.settings, tmp_path)
    merge.apply(batch)
    assert merge.rows() == merge.shards()

"""What Prometheus gets of a task."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from actors.counting.task_counts import TransactionCount
from replicator.events.all_events import FAULT_EVENTS
from replicator.monitoring.meters import TaskMeters
from replicator.monitoring.metrics import STATUS_METRICS, registry_of
from replicator.monitoring.processes import memory_by_process
from replicator.relay_status import RelayStatus
from replicator.status import (
    BinlogDistance,
    BlockedPart,
    CopyStatus,
    Fault,
    HeldAtSource,
    LockStatus,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    WriterStatus,
    now,
)
from scripts.metrics_reference import metric_names, metrics_page

ROOT = Path(__file__).parents[4]
PURGED = Fault("source.purged", "gone", "source b", (), now())
STATUS = TaskStatus(
    task="orders",
    state="running",
    since=now(),
    pid=1,
    sources=(
        SourceStatus(
            "a",
            "reading",
            position="bin.000012:900",
            saved_position="bin.000011:4",
            lag_seconds=1.5,
            rows=12,
            bytes=3000,
            distance=BinlogDistance(1, 5000, 3),
            transactions=7,
        ),
        SourceStatus("b", "blocked"),
    ),
    targets=(TargetStatus("d.t", 4, 2, 10, 5, 3, 1, 99.5, bytes=700, transactions=6),),
    writer=WriterStatus("retrying: away", 3, 12, 4.0, 0.25, 2048, 7.0),
    locks=(
        LockStatus("d.t:3", "d.t", 3, "ALTER", "a", "waiting", now() - timedelta(hours=1), 4),
        LockStatus("d.u:1", "d.u", 1, "ALTER", "a", "conflict", None),
    ),
    copy=CopyStatus("finished", 4, 4, 5000, 9000, 123, 3),
    blocked=(
        BlockedPart("source", "b", now(), PURGED),
        BlockedPart("target", "d.v", now(), held=(HeldAtSource("a", 17),)),
    ),
)


def samples(status: TaskStatus, meters: TaskMeters | None = None) -> dict[str, float]:
    """What Prometheus reads, by name and labels without the task's."""
    text = generate_latest(registry_of(lambda: status, meters or TaskMeters())).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("task") == status.task
            shown = ",".join(f"{name}={value}" for name, value in labels.items())
            found[f"{sample.name}{{{shown}}}" if shown else sample.name] = sample.value
    return found


def test_open_statements_of_one_target_are_one_lock() -> None:
    younger = LockStatus("d.t:3", "d.t", 1, "ALTER", "b", "waiting", now(), 3)
    found = generate_latest(
        registry_of(lambda: replace(STATUS, locks=(*STATUS.locks, younger)), TaskMeters())
    ).decode()
    [held] = [
        line
        for line in found.splitlines()
        if line.startswith('replicator_lock_held_events{lock="d.t:3')
    ]
    assert held.endswith(" 7.0")
    [age] = [line for line in found.splitlines() if line.startswith("replicator_lock_age_seconds{")]
    assert float(age.rpartition(" ")[2]) >= 3600


def test_a_source_with_a_relay_may_purge() -> None:
    relay = RelayStatus(2, 500, "b.000001:4", "b.000002:9")
    for error, figures in (
        ("", {"replicator_source_relay_bytes{source=a}": 500}),
        ("no space", {"replicator_source_binlog_files_before_purge{source=a}": 3}),
    ):
        first = replace(STATUS.sources[0], relay=replace(relay, error=error))
        found = samples(replace(STATUS, sources=(first, *STATUS.sources[1:])))
        assert figures.items() <= found.items()
        assert found["replicator_source_relay_failed{source=a}"] == bool(error)
        before_purge = "replicator_source_binlog_files_before_purge{source=a}"
        assert (before_purge in found) == bool(error)


def test_every_figure_of_the_status_is_told() -> None:
    found = samples(STATUS)
    told = {
        "replicator_state{state=running}": 1,
        "replicator_state{state=paused}": 0,
        "replicator_needs_operator": 1,
        "replicator_fault_active{event=source.purged}": 1,
        "replicator_blocked_held_events{source=a,target=d.v}": 17,
        "replicator_source_lag_seconds{source=a}": 1.5,
        "replicator_source_reading{source=a}": 1,
        "replicator_source_reading{source=b}": 0,
        "replicator_source_binlog_file{at=read,source=a}": 12,
        "replicator_source_binlog_file{at=saved,source=a}": 11,
        "replicator_source_binlog_offset_bytes{at=read,source=a}": 900,
        "replicator_source_binlog_behind_bytes{source=a}": 5000,
        "replicator_source_binlog_files_behind{source=a}": 1,
        "replicator_source_binlog_files_before_purge{source=a}": 3,
        "replicator_source_row_events_total{source=a}": 12,
        "replicator_source_bytes_total{source=a}": 3000,
        "replicator_source_transactions_total{source=a}": 7,
        "replicator_target_rows_total{change=overwritten,target=d.t}": 5,
        "replicator_target_missing_rows_total{target=d.t}": 1,
        "replicator_target_bytes_total{target=d.t}": 700,
        "replicator_target_transactions_total{target=d.t}": 6,
        "replicator_batches_total": 3,
        "replicator_writer_retrying": 1,
        "replicator_queued_bytes": 2048,
        "replicator_checkpoint_age_seconds": 7,
        "replicator_locks{state=waiting}": 1,
        "replicator_locks{state=conflict}": 1,
        "replicator_lock_held_events{lock=d.t:3,target=d.t}": 4,
        "replicator_copy_active": 0,
        "replicator_copy_rows": 5000,
        "replicator_condition_info{condition=blocked (2 parts)}": 1,
    }
    assert {name: found.get(name) for name in told} == told
    assert 3600 <= found["replicator_lock_age_seconds{lock=d.t:3,target=d.t}"] < 7200
    assert found["replicator_blocked_seconds{event=source.purged,kind=source,name=b}"] < 3600
    assert not any("lock=d.u:1" in name for name in found if "age" in name), "it is not known"
    assert "replicator_source_lag_seconds{source=b}" not in found


def test_a_task_that_just_starts_has_metrics_too() -> None:
    found = samples(TaskStatus("orders", "starting", now(), 1))
    assert found["replicator_state{state=starting}"] == 1
    assert not [name for name in found if name.startswith("replicator_source")]


def test_names_that_servers_made_up_do_no_harm() -> None:
    odd = 'a"b\\c\nd\ud800'
    target = TargetStatus(odd, inserted=3)
    found = samples(replace(STATUS, targets=(target,)))
    [value] = [v for name, v in found.items() if "change=inserted" in name]
    assert value == 3


@pytest.mark.parametrize("event", [event.name for event in FAULT_EVENTS])
def test_every_fault_has_its_label(event: str) -> None:
    fault = replace(PURGED, event=event)
    meters = TaskMeters()
    meters.fault(event)
    found = samples(replace(STATUS, error=fault, blocked=()), meters)
    assert found[f"replicator_fault_active{{event={event}}}"] == 1
    assert found[f"replicator_faults_total{{event={event}}}"] == 1


def test_a_restart_is_no_fault_that_needs_somebody() -> None:
    fault = replace(PURGED, event="task.restart")
    found = samples(replace(STATUS, error=fault, blocked=()))
    assert not any(name.startswith("replicator_fault_active") for name in found)


def test_what_happens_is_counted() -> None:
    meters = TaskMeters()
    meters.batch(0.3)
    meters.batch(70)
    meters.visible("a", -0.5)
    meters.restart()
    found = samples(STATUS, meters)
    assert found["replicator_batch_seconds_count"] == 2
    assert found["replicator_batch_seconds_bucket{le=0.5}"] == 1
    assert found["replicator_commit_to_visible_seconds_bucket{le=1.0,source=a}"] == 1
    assert found["replicator_restarts_total"] == 1


def test_a_transaction_in_pieces_counts_once() -> None:
    count = TransactionCount()
    for piece in ([5, 5, 9], [9], [9, 12, 12], [13]):
        count.add(np.array(piece, np.int64))
    assert count.number == 4


def test_the_memory_of_this_process_is_known() -> None:
    found = memory_by_process()
    assert 1 << 20 < found["driver"] < 1 << 40


def test_memory_is_told_by_kind(tmp_path: Path) -> None:
    def process(number: int, parent: int, name: str, pages: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "stat").write_text(f"{number} ({name}) 1) S {parent} 0 0")
        (folder / "comm").write_text(f"{name}\n")
        (folder / "statm").write_text(f"9 {pages} 1")

    process(10, 1, "python", 1)
    process(11, 10, "java", 2)
    process(12, 11, "python) x", 3)
    process(13, 12, "python", 4)
    process(14, 1, "java", 5)
    (tmp_path / "13" / "smaps_rollup").write_text("Rss: 9 kB\nPss:   2 kB\n")
    page = os.sysconf("SC_PAGE_SIZE")
    expected = {"driver": page, "java": 2 * page, "workers": 3 * page + 2048}
    assert memory_by_process(tmp_path, own=10) == expected
    assert memory_by_process(tmp_path / "nowhere", own=10) == {}


def test_the_page_of_the_metrics_is_made_from_the_program() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert page == metrics_page()


def test_names_have_their_units_as_prometheus_wants_them() -> None:
    for name in metric_names():
        assert re.fullmatch(r"replicator_[a-z_]+", name)
    for metric in STATUS_METRICS:
        assert not metric.name.endswith("_total")
        assert metric.meaning.endswith(".")

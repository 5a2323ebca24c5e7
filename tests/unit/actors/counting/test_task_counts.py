"""The counts of a task, to which actors add that come and go."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from rich.console import Console

from actors.copying.progress import CopyProgress
from actors.counting.task_counts import CopyCounts, TaskCounts
from actors.jobs.spark_jobs import JobAttempts
from actors.task.operator.blocked_parts import BlockedParts
from actors.task.status_report import RateMeter, task_status
from replicator.downstream.meta.chunks import ChunkRecord, CopiedTables
from replicator.mysql.names import TableName
from replicator.status import CopyStatus, now
from replicator.terminal.copy_progress import CopyBar

ORDERS, ITEMS = TableName("m", "orders"), TableName("m", "items")


def test_rows_are_those_written_to_all_targets() -> None:
    counts = TaskCounts()
    counts.targets[ORDERS].inserted += 5
    counts.targets[ORDERS].missing += 9
    counts.targets[ITEMS].overwritten += 2
    counts.targets[ITEMS].deleted += 1
    assert counts.rows == 8


def test_a_task_that_starts_anew_shows_what_it_has_done_before() -> None:
    counts = TaskCounts(batches=3)
    counts.targets[ORDERS].inserted += 5
    status = task_status("x", "starting", now(), 1, None, BlockedParts(), None, RateMeter(counts))
    assert (status.writer.batches, status.writer.rows) == (3, 5)


def test_rates_are_those_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, moments = TaskCounts(), iter([100.0, 102.0, 104.0, 108.0])
    monkeypatch.setattr("actors.task.status_report.time.monotonic", lambda: next(moments))
    rates = RateMeter(counts)
    counts.targets[ORDERS].inserted = 1000
    rates.sample()
    assert rates.writer() == rates.target(ORDERS) == 0
    counts.targets[ORDERS].inserted += 20
    counts.targets[ITEMS].deleted += 4
    rates.sample()
    assert (rates.target(ORDERS), rates.target(ITEMS), rates.writer()) == (10, 2, 12)
    rates.sample()
    rates.sample()
    # Seconds 104 to 108, in which nothing was written.
    assert rates.writer() == 0


def test_what_was_copied_before_this_start_is_progress_without_a_rate() -> None:
    progress = CopyProgress(CopyCounts(replaced=2))
    progress.add_former(CopiedTables(tables=2, chunks=5, rows=70, size=900))
    progress.add_former(CopiedTables(tables=1, chunks=1, rows=0, size=0))
    assert progress.status() is None, "nothing is known of it yet"
    progress.finish()
    status = progress.figures()
    assert progress.status() == status
    assert (status.state, status.tables, status.tables_done) == ("finished", 3, 3)
    assert (status.rows, status.rows_expected, status.chunks, status.bytes) == (70, 70, 6, 900)
    assert (status.rows_per_second, status.replaced) == (0, 2)


def test_while_a_new_start_counts_the_copy_is_where_the_last_one_left_it() -> None:
    counts = CopyCounts()
    first = CopyProgress(counts, tables=3, tables_done=1, rows=70, expected=200, counted=True)
    assert first.figures().rows_per_second > 0
    first.end()
    left = first.status()
    assert left is not None
    assert (left.state, left.rows, left.tables_done) == ("copying", 70, 1)
    assert (left.rows_per_second, left.seconds_left) == (0.0, None), "nothing is copied any more"
    again = CopyProgress(counts)
    assert again.status() == left
    again.end()
    third = CopyProgress(counts)
    assert third.status() == left, "the start between did not come to count"
    third.add_former(CopiedTables(tables=3, chunks=5, rows=200, size=900))
    third.finish()
    third.end()
    assert third.status() == third.figures()
    assert CopyProgress(counts).status() == third.figures()


def test_a_copy_that_is_larger_than_expected_has_no_time_left_to_tell() -> None:
    progress = CopyProgress(CopyCounts(), rows=70, expected=71, counted=True)
    assert progress.figures().seconds_left is not None
    progress.rows = 71
    assert progress.figures().seconds_left is None
    progress.finish()
    assert progress.figures().seconds_left == 0


def test_the_time_left_follows_the_rate_of_late_without_jumping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("actors.copying.progress.time.monotonic", lambda: clock[0])
    progress = CopyProgress(CopyCounts(), expected=1_000_000, counted=True, began=0.0)
    progress.figures()

    def copied(seconds: int, rate: int) -> float:
        for _ in range(seconds):
            clock[0] += 1
            progress.rows += rate
            left = progress.figures().seconds_left
        assert left is not None
        return (progress.expected - progress.rows) / left

    assert copied(300, 1000) == pytest.approx(1000, rel=0.01)
    assert 900 < copied(1, 0) < 1000, "a chunk that takes long does not make it jump"
    assert copied(120, 100) == pytest.approx(100, rel=0.25), "the average since the start is 740"


NARROW, WIDE = TableName("s", "narrow"), TableName("s", "wide")


def test_the_time_left_goes_by_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("actors.copying.progress.time.monotonic", lambda: clock[0])
    progress = CopyProgress(CopyCounts(), counted=True, began=0.0)
    progress.expect("a", NARROW, 1_000_000, 20_000_000)
    progress.expect("a", WIDE, 10_000, 1_000_000_000)
    progress.figures()
    for _ in range(10):
        clock[0] += 1
        progress.add("a", NARROW, 100_000, 2_000_000, last=False, former=False)
        figures = progress.figures()
    assert figures.percent is not None
    assert 10 < figures.percent < 11, "nearly all rows are there, and a tenth of the work"
    assert figures.seconds_left == pytest.approx(83, rel=0.1)


def test_what_is_expected_follows_what_was_found() -> None:
    progress = CopyProgress(CopyCounts(), counted=True)
    progress.expect("a", NARROW, 1000, 100_000)
    progress.expect("b", NARROW, 1000, 100_000)
    progress.add("a", NARROW, 500, 5_000, last=True, former=True)
    assert (progress.expected, progress.bytes_expected) == (1500, 105_000)
    progress.add("b", NARROW, 1500, 15_000, last=False, former=False)
    assert (progress.expected, progress.bytes_expected) == (2000, 20_000)
    taken = ChunkRecord(NARROW, 1, None, None, done=True, rows=1500, size=15_000)
    progress.take_back("b", [taken])
    assert (progress.rows, progress.size, progress.chunks) == (500, 5_000, 1)
    assert (progress.rows_before, progress.size_before) == (500, 5_000)
    assert progress.expected == 2000


def test_a_copy_is_not_done_before_it_is() -> None:
    progress = CopyProgress(CopyCounts(), rows=455, expected=1000, counted=True)
    assert progress.figures().percent == 45.5
    progress.rows = 1000
    assert progress.figures().percent == 99.9
    progress.finish()
    assert progress.figures().percent == 100
    assert CopyProgress(CopyCounts(), rows=5, counted=True).figures().percent is None


@pytest.mark.parametrize("width", [80, 200])
def test_the_progress_fits_a_line_and_begins_with_what_matters(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, no_color=True)
    bar = CopyBar(console)
    bar.show(
        CopyStatus(
            "copying",
            tables=1200,
            tables_done=511,
            rows=41_000_000,
            rows_expected=90_000_000,
            bytes=35 << 30,
            bytes_expected=77 << 30,
            rows_per_second=123_456,
            seconds_left=400,
            percent=45.5,
        )
    )
    bar.close()
    assert isinstance(console.file, io.StringIO)
    line = next(line for line in console.file.getvalue().splitlines() if "45.5 %" in line)
    assert "6 min 40 s left, 41.0 of 90.0 M rows, 35.0 of 77.0 GiB" in line


def test_what_waits_tells_since_when_and_when_it_is_tried_again() -> None:
    attempts = JobAttempts()
    first = attempts.times()
    since = first.split(",")[0]
    assert since.startswith("since ")
    assert "next attempt at" in first
    attempts.next = 15.0
    assert attempts.times(60).startswith(since), "the first failure counts"


def test_what_waits_counts_the_time_that_an_executor_has_tried() -> None:
    attempts = JobAttempts()
    before = now() - timedelta(seconds=3600)
    told = attempts.times(3600)
    after = now() - timedelta(seconds=3600)
    assert told.split(",")[0] in {f"since {t:%Y-%m-%d %H:%M:%S} UTC" for t in (before, after)}

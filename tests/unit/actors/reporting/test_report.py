"""The report of a log: of a recorded one of a real task, and of lines that are no records."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from actors.reporting.log_records import LONGEST_LINE, LogReader, lines_of
from actors.reporting.page import nice, report_page, time_marks
from actors.reporting.report import (
    MOST_CHANGES,
    MOST_FAULTS,
    MOST_POINTS,
    Curve,
    Point,
    Report,
    report_of,
)
from actors.reporting.summary import Summary
from tests.unit.replicator.monitoring.test_web_page import TAGS, Page
from tests.unit.test_cli import invoke

RECORDED = Path(__file__).with_name("recorded.jsonl")
"""Made by ``REPLICATOR_TEST_LOG=FILE pytest tests/acceptance/operator/test_report.py``."""
TASK = "orders_eu"
PAGE_TAGS = {*TAGS, "h3", "rect", "line", "text"}
BEGIN = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)


def line(at_second: float, event: str, level: str = "info", /, **fields: Any) -> bytes:
    at = (BEGIN + timedelta(seconds=at_second)).isoformat()
    record = {"timestamp": at, "level": level, "event": event, "task": TASK, **fields}
    return json.dumps(record).encode() + b"\n"


def made_of(lines: Iterable[bytes], since: datetime | None = None) -> tuple[Report, LogReader]:
    reader = LogReader(TASK, since)
    return report_of(TASK, reader.records(lines)), reader


def shown(report: Report, reader: LogReader, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(Summary(report, reader))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return str(text)


@pytest.fixture
def recorded() -> tuple[Report, LogReader]:
    with RECORDED.open("rb") as file:
        return made_of(lines_of(file))


def test_a_recorded_log_tells_what_the_task_went_through(
    recorded: tuple[Report, LogReader],
) -> None:
    report, reader = recorded
    assert reader.unreadable == 0
    kinds = [moment.kind for moment in report.moments]
    once = ["start", "running", "fault", "resume", "killed", "start", "running", "stop"]
    assert kinds == once
    [fault] = report.faults
    assert (fault.event, fault.ended) == ("rows.duplicate", "resumed")
    assert fault.blocked == [f"target {TASK}.customers"]
    [change] = report.changes
    assert change.outcome == "executed"
    assert [wait.source for wait in change.waits] == ["shop-eu-01", "shop-eu-02"]
    first, second = (wait.seconds or 0 for wait in change.waits)
    assert first > second > 0
    assert change.executed_seconds is not None
    assert report.rows == 4
    killed, stopped = report.downs
    assert (killed.why, stopped.why, stopped.until) == ("killed", "stopped", None)
    times = {moment.kind: moment.at for moment in report.moments}
    assert killed.since < times["start"] < times["running"] == killed.until


@pytest.mark.parametrize("width", [80, 200])
def test_the_summary_fits_a_terminal(recorded: tuple[Report, LogReader], width: int) -> None:
    text = shown(*recorded, width)
    for part in ("starts 2, killed or crashed 1, stopped 1", "rows.duplicate", "resumed"):
        assert part in text
    assert f"{TASK}.orders" in text


def test_the_page_has_all_of_it_and_loads_nothing(recorded: tuple[Report, LogReader]) -> None:
    page = Page(report_page(*recorded))
    kinds = {tag for tag, _ in page.tags}
    assert {"svg", "polyline", "rect", "section", "table"} <= kinds <= PAGE_TAGS
    assert not [held for _, held in page.tags if {"src", "href"} & held.keys()]
    for part in ("rows.duplicate", "ADD COLUMN delivered_at", "resumed after", "rows/s", "lag"):
        assert part in page.text
    assert "url(" not in report_page(*recorded)


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\x1b[2J\u202e\ud800"],
    ids=["script", "attribute", "controls"],
)
def test_what_a_log_says_is_text(text: str) -> None:
    lines = [
        line(0, "task.step", step="programs"),
        line(1, "task.running"),
        line(2, text, "warning", reason=text, source=text),
        *(line(3 + n, "task.progress", rows=n, rows_per_second=n, lag_seconds=1) for n in range(3)),
        *(line(7, "lock.item", source=text, member=text, target=text, version=1, statement=text),),
        line(8, "rows.duplicate", "error", error=text, where=text, remedies=[text]),
        line(9, "target.blocked", "warning", target=text, fault="rows.duplicate"),
        line(10, "task.restart", "warning", reason=text, seconds=1),
        line(11, "source.failed-over", source=text, server=text),
    ]
    report, reader = made_of(lines)
    page = report_page(report, reader)
    found = Page(page)
    assert {tag for tag, _ in found.tags} <= PAGE_TAGS
    assert not [name for _, held in found.tags for name in held if name.startswith("on")]
    if "\x1b" in text:
        assert "\x1b" not in page
        assert "\u202e" not in page
        page.encode()
    else:
        assert found.text.count(text) >= 10


@pytest.mark.parametrize(
    ("text", "records"),
    [
        (b"Traceback (most recent call last):", 0),
        (b"[1, 2]", 0),
        (b"[" * 100_000, 0),
        (b'{"event": "x"}', 0),
        (b'{"event": 1, "level": "info", "timestamp": "2026-11-20T22:00:00Z"}', 0),
        (b'{"event": "x", "level": "info", "timestamp": "0001-01-01T00:00:00+14:00"}', 0),
        (b'{"event": "x", "level": "info", "timestamp": ' + b"9" * 5000 + b"}", 0),
        (b"\xff\xfe\x00", 0),
        (b'{"event": "x", "level": "info", "timestamp": "2026-11-20 22:00:00"}', 1),
    ],
    ids=["text", "list", "deep", "no time", "number", "early", "large", "bytes", "record"],
)
def test_a_line_that_is_no_record_is_counted(text: bytes, records: int) -> None:
    report, reader = made_of([text + b"\n", line(0, "task.running"), b"\n"])
    assert (report.records, reader.unreadable, reader.lines) == (1 + records, 1 - records, 2)
    assert ("1 of 2 lines are no records" in shown(report, reader)) == (not records)


def test_a_line_without_an_end_takes_no_memory_to_speak_of() -> None:
    file = io.BytesIO(b"x" * (3 * LONGEST_LINE) + b"\n" + line(0, "task.running"))
    report, reader = made_of(lines_of(file))
    assert (report.records, reader.unreadable) == (1, 3)


def test_odd_figures_are_none() -> None:
    odd: tuple[object, ...] = ("x", None, float("nan"), float("inf"), 10**400, True, [1])
    report, _ = made_of(
        line(n, "task.progress", rows=value, rows_per_second=value, lag_seconds=value)
        for n, value in enumerate(odd)
    )
    assert report.rows == 0
    assert {point.lag_seconds for point in report.progress.points} == {None}


def test_since_and_other_tasks_leave_records_out() -> None:
    other = line(5, "task.running").replace(TASK.encode(), b"other")
    report, reader = made_of(
        [line(0, "task.running"), other, line(10, "task.paused")], BEGIN + timedelta(seconds=4)
    )
    assert (report.records, reader.earlier, reader.others) == (1, 1, {"other": 1})
    assert "other tasks left out: other" in shown(report, reader)


def test_how_faults_end() -> None:
    def fault(at: float, event: str) -> bytes:
        return line(at, event, "error", error="e", where="w", remedies=["r"])

    report, _ = made_of(
        [
            line(0, "task.running"),
            fault(1, "task.leftovers"),
            line(2, "task.paused"),
            line(5, "task.running"),
            fault(10, "source.purged"),
            line(10, "source.blocked", "warning", source="a", fault="source.purged"),
            line(10, "source.blocked", "warning", source="b", fault="source.purged"),
            line(11, "source.resumed", source="a"),
            line(15, "source.resumed", source="b"),
            fault(20, "rows.refused"),
            line(20, "target.blocked", "warning", target="d.t", fault="rows.refused"),
            line(21, "task.running"),
            line(30, "task.stopped"),
            line(40, "task.step", step="programs"),
            fault(50, "rows.refused"),
            line(50, "target.blocked", "warning", target="d.t", fault="rows.refused"),
        ]
    )
    ends = [
        (f.ended, (f.until - f.since).total_seconds() if f.until else None) for f in report.faults
    ]
    assert ends == [
        ("the task ran again", 4.0),
        ("resumed", 5.0),
        ("the process was stopped", 10.0),
        ("", None),
    ]
    assert "OPEN" in shown(report, LogReader(TASK))


def test_a_lock_that_is_open_waits_to_the_end_and_one_that_is_unlocked_says_so() -> None:
    def item(at: float, version: int, source: str) -> bytes:
        shard = {"source": source, "member": "d.t1", "target": "d.t", "version": version}
        return line(at, "lock.item", **shard, statement="ALTER TABLE t1 ADD a INT")

    decided = {"target": "d.t", "version": 1, "unlocked": True, "skipped": True}
    report, _ = made_of(
        [
            item(0, 1, "a"),
            line(60, "lock.decided", **decided),
            line(61, "lock.resolved", target="d.t", version=1),
            item(62, 1, "b"),
            item(100, 2, "a"),
            item(130, 2, "a"),
            line(400, "task.progress"),
        ]
    )
    done, waiting = report.changes
    end = BEGIN + timedelta(seconds=400)
    assert (done.outcome, done.longest_wait(end)) == ("skipped, unlocked by the operator", 61.0)
    assert (waiting.outcome, waiting.longest_wait(end)) == ("waits for shards", 300.0)


@pytest.mark.parametrize("action", ["skip", "replace", "inject"])
def test_a_statement_that_the_operator_skipped_was_not_executed(action: str) -> None:
    shard = {
        "member": "d.t1",
        "target": "d.t",
        "version": 1,
        "statement": "ALTER TABLE t ADD a INT",
    }
    decided = {"target": "d.t", "version": 1, "skipped": False}
    started = {"target": "d.t", "version": 1, "statement": "ALTER TABLE d.t ADD a INT"}
    override = {"source": "a", "action": action, "targets": ["d.t", "d.u"]}
    report, _ = made_of(
        [
            line(0, "lock.item", **shard, source="a"),
            line(1, "lock.item", **shard, source="b"),
            line(2, "lock.decided", **decided),
            line(3, "ddl.started", **started),
            line(9, "ddl.override", "warning", **override),
            line(10, "lock.decided", **decided),
            line(11, "lock.resolved", target="d.t", version=1),
            # A start reads it again.
            line(20, "ddl.override", "warning", **override),
        ]
    )
    [change] = report.changes
    ended = {"skip": "skipped by the operator", "replace": "replaced by the operator"}
    assert change.ended == ended.get(action, "executed")


def test_a_statement_of_the_optimistic_mode_waits_until_its_shard_is_released() -> None:
    def opened(at: float, source: str) -> bytes:
        shard = {"source": source, "member": "d.t1", "target": "d.t", "reason": "no type fits"}
        return line(at, "ddl.open", "warning", **shard, statement="ALTER TABLE t1 MODIFY a INT")

    def released(at: float, source: str) -> bytes:
        given = {"source": source, "target": "d.t", "version": 1, "members": ["d.t1"]}
        return line(at, "lock.released", **given)

    lines = [opened(0, "a"), opened(30, "b"), opened(40, "b"), released(100, "b")]
    end = BEGIN + timedelta(seconds=400)
    (change,) = made_of([*lines, line(400, "task.progress")])[0].changes
    assert (change.outcome, change.longest_wait(end)) == ("open: no type fits", 400.0)
    (change,) = made_of([*lines, released(200, "a"), line(400, "task.progress")])[0].changes
    assert (change.outcome, change.longest_wait(end)) == ("resolved", 200.0)
    again = [*lines, released(200, "a"), opened(300, "a"), line(400, "task.progress")]
    (change,) = made_of(again)[0].changes
    assert [wait.seconds for wait in change.waits] == [200.0, 70.0, None]


def test_statements_without_a_lock_are_changes_of_their_own() -> None:
    def executed(at: float, statement: str, crash: float = 0) -> list[bytes]:
        on = {"source": "a", "target": "d.t", "version": 0}
        begun = [at, at + crash] if crash else [at]
        started = [line(t, "ddl.started", **on, statement=statement, member="m") for t in begun]
        return [*started, line(at + crash + 2, "ddl.executed", **on)]

    add, drop = "ALTER TABLE t ADD c INT", "ALTER TABLE t DROP c"
    lines = [*executed(0, add), *executed(10, drop, crash=30), *executed(60, add)]
    report, _ = made_of(lines)
    assert report.change_count == 3
    told = [(change.statement, change.outcome) for change in report.changes]
    assert told == [(add, "executed"), (drop, "executed"), (add, "executed")]


def test_a_process_that_stands_by_tells_whom_it_takes_over_from() -> None:
    report, _ = made_of(
        [
            line(0, "task.step", step="programs"),
            line(5, "task.standby", host="db1", process=7),
            line(900, "task.takeover", former="process 7 on host db1"),
            line(902, "task.running"),
        ]
    )
    told = [moment.text for moment in report.moments]
    assert told == [
        "a process starts",
        "stands by: process 7 on host db1 runs the task",
        "takes over from process 7 on host db1",
        "the task runs, 2.0 s after its start",
    ]


def test_a_long_log_takes_little_memory() -> None:
    def lines() -> Iterator[bytes]:
        for n in range(10_000):
            yield line(60 * n, "task.progress", rows=n, rows_per_second=n, lag_seconds=n % 7)
            yield line(60 * n, "rows.refused", "error", error="e" * 200, where="w")
            yield line(60 * n, f"text of a library {n}", "warning", reason="r" * 200)
            item = {"source": "a", "member": "m", "target": "t", "version": n}
            yield line(60 * n, "lock.item", **item, statement="s" * 200)

    tracemalloc.start()
    report, _ = made_of(lines())
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 8 << 20
    assert (report.fault_count, len(report.faults)) == (10_000, MOST_FAULTS)
    assert (report.change_count, len(report.changes)) == (10_000, MOST_CHANGES)
    assert sum(told.count for told in report.messages) == 10_000
    assert len(report.progress.points) <= MOST_POINTS


def test_a_curve_keeps_extremes_and_the_mean_of_all_points() -> None:
    curve = Curve()
    for n in range(10 * MOST_POINTS):
        lag = 99.0 if n == 777 else 1.0
        curve.add(Point(BEGIN + timedelta(minutes=n), float(n), lag))
    assert len(curve.points) <= MOST_POINTS
    assert curve.most_lag is not None
    assert curve.most_lag.at == BEGIN + timedelta(minutes=777)
    assert curve.mean_rows == pytest.approx((10 * MOST_POINTS - 1) / 2)
    assert max(point.lag_seconds or 0 for point in curve.points) == 99.0
    assert all(one.at < other.at for one, other in pairwise(curve.points))


@pytest.mark.parametrize("span", [1, 59, 3600, 86_400, 864_000, 864_000_000])
def test_a_time_axis_has_marks_at_any_span(span: int) -> None:
    marks = time_marks(BEGIN, BEGIN + timedelta(seconds=span))
    assert 1 <= len(marks) <= 9
    assert BEGIN <= marks[0][0] <= marks[-1][0] <= BEGIN + timedelta(seconds=span)


def test_the_largest_value_of_a_plot_is_round() -> None:
    assert [nice(value) for value in (0, 0.4, 3, 10, 10.1, 999, 123456)] == [
        *(1, 1, 5, 10, 20, 1000, 200_000)
    ]


def test_the_command(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, _ = invoke("report", TASK, "--log-file", str(RECORDED), "--html", str(page))
    assert code == 0
    assert "rows.duplicate" in out
    assert page.read_text().startswith("<!DOCTYPE html>")
    code, out, _ = invoke(
        *("report", TASK, "--log-file", str(RECORDED), "--log-file", str(RECORDED)),
    )
    assert (code, bool(re.search("starts 4", out))) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("other", "--log-file", str(RECORDED)), 1, f"it has records of {TASK}"),
        ((TASK, "--log-file", str(RECORDED), "--since", "3000-01-01"), 1, "all of them are older"),
        ((TASK, "--log-file", __file__), 1, "none of its"),
        ((TASK, "--log-file", "/nowhere/at.all"), 2, "can't be read"),
        ((TASK, "--log-file", str(RECORDED), "--since", "yesterday"), 2, "how long ago as 12h"),
        ((TASK, "--log-file", str(RECORDED), "--since", "99999999999h"), 2, "how long ago as 12h"),
        ((TASK, "--log-file", str(RECORDED), "--html", "/nowhere/x"), 1, "can't be written"),
    ],
    ids=["other", "since", "no log", "no file", "word", "too long ago", "page"],
)
def test_a_command_that_can_tell_nothing_says_why(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    found, _, err = invoke("report", *arguments)
    assert found == code
    assert said in err

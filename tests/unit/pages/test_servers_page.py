"""docs/reference/servers.md and how it is made from what a run of the matrix has counted."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.servers_page import FIELD_TEXTS, HEAD, NOT_RUN, page
from tests.support.servers.matrix import CHOSEN, FIELDS, SOURCES, TARGETS, Cell, Report

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "servers.md").read_text()


def test_the_page_has_what_every_run_gives_it() -> None:
    assert PAGE.startswith(HEAD)
    for text in FIELD_TEXTS.values():
        assert text in PAGE
    for line in page(Report()).splitlines():
        if line.startswith(("#", "| from", "|---", "| kind")):
            assert line in PAGE.splitlines()


def test_each_field_has_a_row_of_each_source() -> None:
    for part in PAGE.split("\n## ")[1 : len(FIELDS) + 1]:
        rows = [line for line in part.splitlines() if line.startswith("| M")]
        assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [*SOURCES.values()]
        assert {row.count(" | ") for row in rows} == {len(TARGETS)}


def test_what_was_not_run_is_said() -> None:
    report = Report({"rows/mysql_source/tidb": Cell(8)}, {"tidb": "7.5"})
    (row,) = [line for line in page(report).splitlines() if "8 passed" in line]
    assert row == f"| {SOURCES['mysql_source']} | {NOT_RUN} | {NOT_RUN} | {NOT_RUN} | 8 passed |"


def test_what_failed_or_was_left_out_is_said() -> None:
    cell = Cell(5, 1, {"TiDB 7.5: it has no such thing": 2})
    made = page(Report({"DDL/mysql_source/tidb": cell}, {}))
    assert "5 passed, **1 failed**, 2 left out" in made
    assert "* TiDB 7.5: it has no such thing (DDL)" in made


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = Report({"rows/a/b": Cell(1, 0, {"why": 1})}, {"a": "1"})
    report.write(tmp_path / "matrix.json")
    assert Report.read(tmp_path / "matrix.json") == report
    assert json.loads((tmp_path / "matrix.json").read_text())
    assert Report.read(tmp_path / "none.json") == Report()


def test_each_kind_has_its_turn_in_the_usual_runs() -> None:
    assert {source for source, _ in CHOSEN} == set(SOURCES)
    assert {target for _, target in CHOSEN} == set(TARGETS)

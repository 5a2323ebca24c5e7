"""The matrix: tests that are run from each kind of source into each kind of target.

A test that `matrix` marks gets ``source`` and ``target_server`` in pairs. In the usual
runs these are one pair, and with ``broad`` so many that each kind has its turn; with ``--matrix``
all pairs, and no other tests are run. What each pair came to is written to a file
(``--matrix-report``), from which `scripts.servers_page` makes docs/reference/servers.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

SOURCES = {
    "mysql_source": "MySQL 9.7",
    "mysql56_source": "MySQL 5.6",
    "mariadb11_source": "MariaDB 11.8",
    "mariadb_source": "MariaDB 10.11",
}
"""Fixtures of sources, and what the page calls them."""

TARGETS = {
    "mysql": "MySQL 9.7",
    "mariadb11": "MariaDB 11.8",
    "mariadb": "MariaDB 10.11",
    "tidb": "TiDB 7.5",
}
"""Kinds of targets, and what the page calls them."""

FIELDS = ("rows", "types", "DDL", "crashes", "copy")

USUAL = ("mariadb_source", "mariadb")
CHOSEN = (
    USUAL,
    ("mysql56_source", "tidb"),
    ("mysql_source", "mysql"),
    ("mariadb11_source", "mariadb11"),
)
"""Each kind of source and of target once: what a broad test has in every run."""

MORE = ("mariadb_source_full", "mariadb")
"""Full row metadata makes no cell of the matrix; it has its turn among the slow tests."""

PAIRS: list[Any] = [
    *((source, target) for source in SOURCES for target in TARGETS),
    pytest.param(*MORE, marks=pytest.mark.slow),
]

Test = TypeVar("Test", bound=Callable[..., Any])

CELL = "matrix"
"""The property of a test's report that tells its cell."""


@dataclass
class Cell:
    """What the tests of one field came to with one pair; why some were left out."""

    passed: int = 0
    failed: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass
class Report:
    """The cells of a matrix that were run, by field, source and target; the servers' versions."""

    cells: dict[str, Cell] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def cell(self, field_: str, source: str, target: str) -> Cell:
        return self.cells.setdefault("/".join((field_, source, target)), Cell())

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")

    @staticmethod
    def read(path: Path) -> Report:
        """The report of a file, an empty one where there is none."""
        if not path.exists():
            return Report()
        values = json.loads(path.read_text())
        cells = {name: Cell(**cell) for name, cell in values["cells"].items()}
        return Report(cells, values["versions"])


def matrix(
    field: str, *, broad: bool = False, only: Collection[str] = ()
) -> Callable[[Test], Test]:
    """Marks a test of the matrix, which takes ``source`` and ``target_server``.

    ``broad``: in the usual runs it has the chosen pairs. With ``only``, what has none of these
    parameters has the usual pair alone.
    """
    assert field in FIELDS
    mark = pytest.mark.matrix(field, broad=broad, only=frozenset(only))
    pairs = pytest.mark.parametrize(("source", "target_server"), PAIRS, indirect=True)
    return lambda test: mark(pairs(test))


def is_needed(item: pytest.Item, *, every: bool, target: str = "") -> bool:
    """Whether a test has its turn with its pair; ``every``: in a run of the matrix.

    ``target``: the kind that all tests use in this run.
    """
    marker = item.get_closest_marker("matrix")
    if marker is None or not isinstance(item, pytest.Function):
        return not every
    given = item.callspec.params
    pair = given["source"], given["target_server"]
    only = marker.kwargs["only"]
    if only and not any(value in only for value in given.values() if isinstance(value, str)):
        return pair == (USUAL[0], target or USUAL[1]) and not every
    if every:
        return pair != MORE and item.get_closest_marker("slow") is None
    if target:
        return pair[1] == target
    return pair in (*(CHOSEN if marker.kwargs["broad"] else (USUAL,)), MORE)


def refusal(item: pytest.Item, source: str, target: str) -> str | None:
    """Why a test is left out with a pair: the reasons of its marks."""
    names = {"not_from": (source, SOURCES), "not_into": (target, TARGETS)}
    for name, (kind, titles) in names.items():
        for marker in item.iter_markers(name):
            if kind in marker.args[0]:
                return f"{titles[kind]}: {marker.args[1]}"
    return None


class MatrixReporter:
    """Counts what the tests of each cell came to, into the file at ``path``.

    A field that is run anew replaces what the file had of its cells.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = Report()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties).get(CELL)
        if told is None or (report.when != "call" and report.outcome == "passed"):
            return
        field_, source, target, versions = json.loads(str(told))
        self._found.versions |= versions
        cell = self._found.cell(field_, source, target)
        if report.outcome == "skipped":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
            reason = reason.removeprefix("Skipped: ")
            cell.left_out = dict(Counter(cell.left_out) + Counter([reason]))
        elif report.outcome == "passed":
            cell.passed += 1
        else:
            cell.failed += 1

    def pytest_sessionfinish(self) -> None:
        report = Report.read(self._path)
        report.cells |= self._found.cells
        report.versions |= self._found.versions
        report.write(self._path)


def properties_of(cell: Iterable[str], versions: dict[str, str]) -> tuple[str, str]:
    """The property that tells a test's cell: field, source, target; and versions of servers."""
    return CELL, json.dumps([*cell, versions])

"""The page about servers, made from what a run of the matrix has counted.

``python -m scripts.servers_page matrix.json > docs/reference/servers.md`` writes it anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers.matrix import FIELDS, SOURCES, TARGETS, Cell, Report

HEAD = """\
# Supported servers

The tests run from each kind of source into each kind of target. A run of them makes this page
(`make matrix`, [Testing](../inside/testing.md#the-matrix)); don't edit it.

A cell counts the tests that passed when they last ran with that pair. `not run` means that no run
had finished when the page was made. A test leaves out what a server lacks, as each section says.
The end of the page lists whole tests that were left out, with the reason.
"""

FIELD_TEXTS = {
    "rows": "Rows of tables with keys of all kinds and without one, changed, moved, swapped: "
    "`tests/integration/rows/test_rows_keys.py`, "
    "`tests/integration/rows/test_rows_transactions.py`.",
    "types": "Values of all types at their limits, in a column beside the key, in the key, and in "
    "a table without a key: "
    "`tests/integration/rows/test_rows_types.py`. Targets on MySQL lack the types that "
    "only MariaDB has (UUID, INET, compressed columns). TiDB also lacks utf16, utf32, ucs2, sjis, "
    "cp1251, latin1, GEOMETRY, POINT and JSON, or keeps them in other bytes "
    "([TiDB](../how-to/tidb.md)). MariaDB 11 takes COMPRESSED only before the charset of a column, "
    "MariaDB 10.11 also behind it.",
    "DDL": "Schema changes between rows: `tests/integration/rows/test_rows_ddl.py`.",
    "crashes": "The process is killed while it writes and while it copies: "
    "`tests/acceptance/crashes/test_crashes.py`, `tests/acceptance/crashes/test_copy.py`.",
    "copy": "The full copy, byte for byte: `tests/integration/copy/test_copy.py`.",
}

NOT_RUN = "not run"


def page(report: Report) -> str:
    """The page, in Markdown."""
    return (
        "\n".join([HEAD, *_versions(report), *_fields(report), *_left_out(report)]).rstrip() + "\n"
    )


def _versions(report: Report) -> Iterator[str]:
    yield from ("| kind | tested version |", "|---|---|")
    titles = {**SOURCES, **TARGETS}
    found = {titles[kind]: version for kind, version in report.versions.items()}
    for title in sorted(set(titles.values())):
        yield f"| {title} | {found.get(title, NOT_RUN)} |"
    yield ""


def _fields(report: Report) -> Iterator[str]:
    for field in FIELDS:
        yield f"## {field[0].upper()}{field[1:]}"
        yield ""
        yield FIELD_TEXTS[field]
        yield ""
        yield f"| from, into | {' | '.join(TARGETS.values())} |"
        yield "|---" * (len(TARGETS) + 1) + "|"
        for source, title in SOURCES.items():
            cells = [report.cells.get(f"{field}/{source}/{target}") for target in TARGETS]
            yield f"| {title} | {' | '.join(map(_shown, cells))} |"
        yield ""


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return NOT_RUN
    shown = [f"{cell.passed} passed"]
    if cell.failed:
        shown.append(f"**{cell.failed} failed**")
    if cell.left_out:
        shown.append(f"{sum(cell.left_out.values())} left out")
    return ", ".join(shown)


def _left_out(report: Report) -> Iterator[str]:
    yield from ("## What is left out, and why", "")
    reasons: dict[str, set[str]] = {}
    for name, cell in report.cells.items():
        for reason in cell.left_out:
            reasons.setdefault(reason, set()).add(name.split("/")[0])
    if not reasons:
        yield "Nothing."
    for reason in sorted(reasons):
        fields = ", ".join(field for field in FIELDS if field in reasons[reason])
        yield f"* {reason} ({fields})"
    yield ""


def main() -> None:
    """Print the page of the report whose path is given."""
    sys.stdout.write(page(Report.read(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()

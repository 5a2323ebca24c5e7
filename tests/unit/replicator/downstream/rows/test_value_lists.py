"""Many row lines as one VALUES clause, and the runs that statements are made of."""

from __future__ import annotations

import random

import pytest

from replicator.downstream.rows.literals import row_values
from replicator.downstream.rows.statements import ROWS_PER_STATEMENT, runs
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.rows.decoder.lines import lines_of

FIELDS = (
    b"\\N",
    b"",
    b"1",
    b"it's",
    b"'\\\\N'",
    b"\\\\N",
    b"\\t\\n",
    b"a\\\\",
    b"x\\0y",
    b"'",
    b"\xff,(",
)
PLAIN = TargetColumn("a", Literal.BINARY)
JSON = TargetColumn("b", Literal.JSON)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("last", [PLAIN, JSON], ids=["plain", "json"])
def test_many_rows_are_written_as_each_alone_would_be(count: int, last: TargetColumn) -> None:
    draw = random.Random(count)
    columns = [PLAIN] * (count - 1) + [last]
    lines = [b"\t".join(draw.choices(FIELDS, k=count)) for _ in range(300)]
    one_by_one = b",".join(row_values([line], columns) for line in lines)
    assert row_values(lines, columns) == row_values(lines_of(lines), columns) == one_by_one


def test_rows_are_quoted_field_by_field() -> None:
    lines = [b"it's\t\\N", b"\t'\\\\N'"]
    assert row_values(lines, [PLAIN] * 2) == rb"('it\'s',NULL),('','\'\\N\'')"
    assert row_values([b"\\N\t\\N"], [PLAIN, JSON]) == b"(NULL,NULL)"
    assert row_values([b"", b""], []) == b"(),()"


def test_runs_hold_all_lines_in_order_and_none_is_too_long() -> None:
    draw = random.Random(7)
    lines = [b"'" * draw.choice([0, 1, 10, 300, 5000]) + b"\t1" for _ in range(3000)]
    size, columns = 20_000, [PLAIN, PLAIN]
    for given in (lines, lines_of(lines)):
        found: list[bytes] = []
        for first, run in runs(given, 2, size):
            assert first == len(found)
            found += run
            assert len(row_values(run, columns)) <= size
            assert len(run) <= ROWS_PER_STATEMENT
        assert found == lines


def test_a_row_that_is_too_long_is_a_run_of_its_own() -> None:
    lines = [b"a", b"b" * 500, b"c", b"d"]
    assert [(first, [*run]) for first, run in runs(lines, 1, 100)] == [
        (0, [b"a"]),
        (1, [b"b" * 500]),
        (2, [b"c", b"d"]),
    ]
    assert not [*runs([], 1, 100)]
    short = [[*run] for _, run in runs([b""] * (ROWS_PER_STATEMENT + 1), 0, 1 << 30)]
    assert [len(run) for run in short] == [ROWS_PER_STATEMENT, 1]

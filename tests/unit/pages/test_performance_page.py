"""docs/inside/performance.md says what each row of the benchmark does."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.rows import ROWS

PAGE = (Path(__file__).parents[3] / "docs/inside/performance.md").read_text(encoding="utf-8")


def test_the_rows_of_the_benchmark_are_told_in_their_order() -> None:
    table = PAGE.split("| row | what is done | compared with |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    told = [name for cell in cells for name in re.findall(r"`([a-z-]+)`", cell)]
    assert sorted(told) == sorted(row.name for row in ROWS)

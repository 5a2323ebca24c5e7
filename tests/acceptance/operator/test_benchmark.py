"""The benchmark, with next to nothing to measure: that it works, and finds the tables equal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.sizes import TINY

ROOT = Path(__file__).parents[3]
ROWS = ["inserts", "copy", "latency", "start-shards"]


@pytest.mark.slow
def test_the_benchmark_measures_rows_of_each_kind(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    options = ["--size", "tiny", "--runs", "1", "--output", str(output)]
    options += [text for name in ROWS for text in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    assert list(rows) == ROWS
    assert all(value > 0 for row in rows.values() for value in row["medians"].values())
    raw = {name: row["runs"][0]["raw"] for name, row in rows.items()}
    assert raw["inserts"]["task"]["rows"] == TINY.order_rows
    assert raw["inserts"]["task"]["cpu_workers"] > 0
    assert raw["copy"]["copy"]["rows"] == TINY.copied_rows
    assert len(raw["latency"]["under_load"]["all"]) == TINY.commits
    lines = done.stdout.splitlines()
    assert len(lines) == 2 + sum(len(row["lines"]) for row in rows.values())
    assert "| goal | floor |" in lines[0]

"""The benchmark, with next to nothing to measure: that it works, and finds the tables equal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIZES = {"rows": 2000, "transactions": 50, "accounts": 500, "commits": 3, "runs": 1}


@pytest.mark.slow
def test_the_benchmark_measures_everything(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    options = [text for name, value in SIZES.items() for text in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.catch_up", *options, "--output", str(output)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(output.read_text())["runs"]
    assert run["inserts"]["rows"] == SIZES["rows"]
    assert run["changes"]["rows"] == 4 * SIZES["transactions"]
    assert len(run["latencies"]) == SIZES["commits"]
    assert run["inserts"]["cpu_java"] > 0
    assert all(ratio > 0 for ratio in run["ratios"].values())
    assert "ratio to LOAD DATA" in done.stdout

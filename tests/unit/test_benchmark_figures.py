from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.latency import percentile
from benchmarks.processes import ProcessTreeWatch, descendants


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50.0), (0.95, 95.0), (0.951, 96.0), (1.0, 100.0)]
)
def test_percentile_is_the_nearest_rank(share: float, value: float) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], share) == value


def test_watch_counts_the_cpu_time_of_children() -> None:
    spin = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    with ProcessTreeWatch(os.getpid()) as watch:
        child = subprocess.Popen(
            [sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            child.stdout.readline()
            assert child.pid in descendants(os.getpid())
            watch.sample()
        usage = watch.usage
    assert usage.cpu_workers >= 0.25
    assert usage.tree > 0
    assert usage.driver > 0

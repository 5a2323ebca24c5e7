"""What keeps the benchmark from measuring."""

from __future__ import annotations


class BenchmarkError(Exception):
    """A run can't be measured; the message says why."""

"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from benchmarks.errors import BenchmarkError


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts, but for ``…_seconds``. ``growth_…`` is what more targets, sources, members share."""

    order_rows: int = 3_000_000
    transactions: int = 200_000
    account_rows: int = 50_000
    """Per shard, which the transactions change."""
    tidb_rows: int = 3_000_000
    updates: int = 1_000_000
    updated_keys: int = 10_000
    wide_rows: int = 300_000
    blobs: int = 500
    copied_rows: int = 20_000_000
    compared_rows: int = 10_000_000
    purged_rows: int = 4_000_000
    commits: int = 200
    """Single commits that latency is measured with, idle and under load."""
    growth_rows: int = 3_000_000
    growth_transactions: int = 200_000
    targets: tuple[int, ...] = (1, 10, 50, 200)
    sources: tuple[int, ...] = (1, 2, 4)
    members: tuple[int, ...] = (50, 500, 5000)
    altered_targets: int = 40
    transaction_rows: int = 10_000_000
    backlog_rows: int = 8_000_000
    started_targets: int = 250
    """Each with two shards at two sources."""
    idle_seconds: int = 600


FULL = Sizes()
SMALL = Sizes(
    order_rows=600_000,
    transactions=30_000,
    tidb_rows=200_000,
    updates=100_000,
    updated_keys=1_000,
    wide_rows=50_000,
    blobs=150,
    copied_rows=3_000_000,
    compared_rows=1_600_000,
    purged_rows=1_600_000,
    growth_rows=200_000,
    growth_transactions=20_000,
    targets=(1, 200),
    sources=(1, 4),
    members=(50, 1000),
    transaction_rows=1_000_000,
    backlog_rows=1_600_000,
    idle_seconds=60,
)
"""Minutes instead of hours, to see where things stand; too short to be steady."""

TINY = Sizes(
    order_rows=2_000,
    transactions=52,
    account_rows=500,
    tidb_rows=2_000,
    updates=400,
    updated_keys=40,
    wide_rows=200,
    blobs=4,
    copied_rows=2_000,
    compared_rows=3_200,
    purged_rows=32_000,
    commits=3,
    growth_rows=2_000,
    growth_transactions=40,
    targets=(1, 3),
    sources=(1, 4),
    members=(4, 8),
    altered_targets=3,
    transaction_rows=20_000,
    backlog_rows=16_000,
    started_targets=2,
    idle_seconds=3,
)
"""Next to nothing: to see that everything works."""

SIZES = {"full": FULL, "small": SMALL, "tiny": TINY}


def changed(sizes: Sizes, values: dict[str, Any]) -> Sizes:
    """The sizes with some of them replaced. Raises BenchmarkError for names that are none."""
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    try:
        return replace(sizes, **given)
    except TypeError as error:
        raise BenchmarkError(f"no such size: {error}") from error

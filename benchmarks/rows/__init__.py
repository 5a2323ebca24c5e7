"""The rows of the benchmark's table, in its order."""

from __future__ import annotations

from benchmarks.row import Row
from benchmarks.rows import (
    alters,
    comparing,
    full_copy,
    gray_release,
    growth,
    hot_keys,
    idle,
    inserts,
    large_rows,
    latency,
    memory,
    purged_source,
    reconciling,
    relay,
    small_transactions,
    start,
    start_of_shards,
    tidb,
    validation,
)

ROWS: tuple[Row, ...] = (
    inserts.ROW,
    small_transactions.ROW,
    tidb.ROW,
    hot_keys.ROW,
    large_rows.WIDE,
    large_rows.BLOBS,
    full_copy.ROW,
    comparing.ROW,
    reconciling.ROW,
    purged_source.ROW,
    latency.ROW,
    gray_release.ROW,
    validation.ROW,
    relay.ROW,
    growth.TARGETS,
    growth.SOURCES,
    growth.SOURCES_OF_CHANGES,
    growth.MEMBERS,
    alters.ROW,
    memory.TRANSACTION,
    memory.BACKLOG,
    start.ROW,
    start_of_shards.ROW,
    idle.ROW,
)

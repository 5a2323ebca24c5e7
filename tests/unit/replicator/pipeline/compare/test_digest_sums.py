"""Which task reads which tables."""

from __future__ import annotations

import pytest

from replicator.pipeline.compare.digest_sums import tables_by_task


@pytest.mark.parametrize(
    ("shards", "tasks", "tables"),
    [
        (1, 1, [[0], [1]]),
        (3, 1, [[0], [1, 2, 3]]),
        (3, 3, [[0], [1, 3], [2]]),
        (2, 8, [[0], [1], [2]]),
    ],
)
def test_the_target_is_read_alone(shards: int, tasks: int, tables: list[list[int]]) -> None:
    assert tables_by_task(shards, tasks) == tables

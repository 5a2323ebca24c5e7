"""Starts, stops and removals in any order: no row is missing while the task says that it runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.tasks.operator import Operator
from tests.support.tasks.shards import Shards

pytestmark = pytest.mark.slow

STARTS = 10


@pytest.mark.parametrize("seed", [1])
def test_no_row_is_missing_while_it_runs(
    shards: Shards,
    tmp_path: Path,
    seed: int,
) -> None:
    shards.change(rows=60)
    with closing(Operator(shards, tmp_path, seed)) as operator:
        while operator.starts < STARTS:
            operator.step()
        operator.settle()

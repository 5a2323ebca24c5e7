"""Random histories of several tables on three shards, in all modes: see `tests.workload.walks`."""

from __future__ import annotations

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from tests.workload.history_run import HistoryOutcome, HistoryRun
from tests.workload.history_walks import walk_of
from tests.workload.walks import unequal, walk

SEEDS = (2, 4, 5, 8)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_all_shards_walk_through_random_histories(mode: str) -> None:
    walks = [walk_of(seed, renames=False) for seed in SEEDS]
    with (
        MariaDBServer() as first,
        MariaDBServer() as second,
        MariaDBServer() as target,
        HistoryRun({"a": first, "b": second}, target, mode) as run,
    ):
        outcome = walk(run, walks, HistoryOutcome(mode, "walks"))
    assert outcome.refused == []
    assert unequal(outcome, walks) == {}

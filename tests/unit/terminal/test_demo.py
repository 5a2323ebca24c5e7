from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import config
from replicator.binlog.positions.position import BinlogPosition
from replicator.demo import show
from replicator.demo.estate import Estate
from replicator.demo.process import write_task_file
from replicator.demo.proof import unmatched
from replicator.demo.tables import ENTITIES, SOURCES, Entity
from replicator.sandbox.mariadb import MariaDBServer
from replicator.status import SourceStatus, TaskStatus, now

bags = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=12)


@given(bags, bags)
def test_what_two_multisets_do_not_have_in_common(shards: list[bytes], target: list[bytes]) -> None:
    found = Counter(unmatched(iter(sorted(shards)), iter(sorted(target))))
    expected = Counter(("shards", one) for one in (Counter(shards) - Counter(target)).elements())
    expected += Counter(("target", one) for one in (Counter(target) - Counter(shards)).elements())
    assert found == expected


@pytest.mark.parametrize(
    ("saved", "reached"),
    [
        ("", False),
        ("bin.000002:99", False),
        ("bin.000002:100", True),
        ("bin.000002:100 (0-1-7)", True),
        ("bin.000003:4", True),
        ("bin.000001:5000", False),
    ],
)
def test_caught_up_is_when_the_saved_position_reaches_the_end(saved: str, reached: bool) -> None:
    status = TaskStatus(
        "demo", "running", now(), 1, sources=(SourceStatus("a", "", saved_position=saved),)
    )
    behind = show._behind(status, {"a": BinlogPosition("bin.000002", 100)})
    assert (behind == "") is reached


def test_a_source_that_is_not_reported_is_behind() -> None:
    status = TaskStatus("demo", "running", now(), 1)
    assert "a is saved up to nothing" in show._behind(status, {"a": BinlogPosition("b.1", 4)})


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_rows_fit_their_columns(entity: Entity) -> None:
    rng = random.Random(1)
    assert all(len(entity.row(rng, n)) == len(entity.columns) for n in range(50))
    assert set(entity.change(rng)) < set(entity.columns)


def test_the_task_file_is_one_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MariaDBServer, "port", 3307)
    servers = {source: MariaDBServer() for source in SOURCES}
    path = tmp_path / "demo.yaml"
    write_task_file(
        path,
        Estate(servers, MariaDBServer()),
        {source: BinlogPosition("binlog.000001", 328) for source in SOURCES},
    )
    task = config.load_task(path)
    assert task.warnings == ()
    assert [source.source_id for source in task.sources] == list(SOURCES)
    assert {route.target_table for route in task.routes.values()} == {e.name for e in ENTITIES}

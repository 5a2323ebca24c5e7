from __future__ import annotations

import random
from pathlib import Path

import pytest

import config
from replicator.binlog.positions.position import BinlogPosition
from replicator.demo import show
from replicator.demo.estate import Estate
from replicator.demo.process import write_task_file
from replicator.demo.tables import ENTITIES, SOURCES, Entity
from replicator.sandbox.mariadb import MariaDBServer
from replicator.status import SourceStatus, TaskStatus, now


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

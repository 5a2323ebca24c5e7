"""What is sent to executors and asked of them, and whether a Spark master answers."""

from __future__ import annotations

import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.checks.run.all_checks import check_cluster
from replicator.pipeline.spark import cluster
from replicator.pipeline.spark.cluster import cluster_settings, cut_off, is_local, look_around, pack


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_a_master_in_this_process(master: str) -> None:
    assert is_local(master)


@pytest.mark.parametrize(
    "master", ["spark://h:7077", "yarn", "k8s://https://h", "local-cluster[1]"]
)
def test_a_master_elsewhere(master: str) -> None:
    assert not is_local(master)


def test_the_archive_holds_our_package_and_is_named_by_its_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    archive = pack(first)
    assert "replicator/pipeline/worker_daemon.py" in zipfile.ZipFile(archive).namelist()
    assert pack(second).name == archive.name


def test_a_path_of_the_operator_stays_behind_ours() -> None:
    settings = cluster_settings({"spark.executorEnv.PYTHONPATH": "/opt/more"}, "-Xjava")
    assert settings["spark.executorEnv.PYTHONPATH"] == "replicator-package:/opt/more"
    assert settings["spark.executor.extraJavaOptions"] == "-Xjava"


def test_executors_that_can_not_fetch_batches_are_told_with_the_way_out() -> None:
    error = cut_off(
        Exception(
            "Traceback (most recent call last):\n  in stay\nreplicator.pipeline.worker."
            "DriverUnreachableError: the executor on w1 can't connect to the driver at d:7: no"
            " route\n\tat java"
        )
    )
    assert error is not None
    assert str(error).startswith("the executor on w1 can't connect to the driver at d:7: no route,")
    assert "spark.replicator.port" in error.remedies[0]
    assert cut_off(Exception("another one")) is None


def test_a_module_that_an_executor_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_around() == ()
    monkeypatch.setattr(cluster, "NEEDED", ("no_such_module",))
    [lack] = look_around()
    assert "no_such_module" in lack
    assert socket.gethostname() in lack


@pytest.mark.parametrize(
    "module",
    [
        "apply.apply",
        "spark.cluster",
        "apply.job",
        "duplicate_keys.key_collisions",
        "workers.worker",
        "session",
        "copy.copy_chunk",
        "worker_daemon",
    ],
)
def test_executors_need_no_package_that_only_the_driver_has(module: str) -> None:
    blocked = ["aiomysql", "anyio", "structlog", "stamina", "pydantic", "yaml", "typer", "sqlglot"]
    blocked += ["cryptography"]
    code = (
        f"import sys; sys.modules |= dict.fromkeys({blocked}); import replicator.pipeline.{module}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_only_a_standalone_master_is_looked_for() -> None:
    assert await check_cluster("local[*]") == []
    assert await check_cluster("yarn") == []


async def test_one_of_several_masters_answers(listening: str, closed: str) -> None:
    [result] = await check_cluster(f"spark://{closed},{listening}")
    assert result.state == "passed"


async def test_no_master_answers(closed: str) -> None:
    [result] = await check_cluster(f"spark://{closed},nowhere")
    assert result.state == "failed"
    assert closed in result.finding
    assert "nowhere is not host:port" in result.finding
    assert "spark.master" in result.remedies[0]

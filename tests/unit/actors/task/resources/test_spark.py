"""Spark is started beside all else, and ended also where nobody has come to need it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import cast

import anyio
import pytest
from pyspark import SparkContext

import actors.task.resources.spark
import cli
from actors.task.resources.spark import Opening, TaskSpark
from config.loading import load_task
from config.models import Task

EXAMPLE = Path(__file__).parents[5] / "config/examples/merge-two-sources.yaml"
MADE = cast("SparkContext", object())


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("SHARD_PASSWORD", "one")
    monkeypatch.setenv("TARGET_PASSWORD", "two")
    return load_task(EXAMPLE)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[SparkContext]:
    """The applications that were ended."""
    found: list[SparkContext] = []
    monkeypatch.setattr(actors.task.resources.spark, "close_spark", found.append)
    monkeypatch.setattr(actors.task.resources.spark, "ready", lambda spark: spark)
    monkeypatch.setattr(actors.task.resources.spark, "begin_tasks", lambda spark: None)
    return found


def started_by(monkeypatch: pytest.MonkeyPatch, *results: SparkContext | Exception) -> list[str]:
    """Have Spark start or fail, one time after the other; the masters that it was started for."""
    left, masters = list(results), []

    def start(master: str, conf: object, name: str, java: object) -> SparkContext:
        masters.append(master)
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(actors.task.resources.spark, "spark_context", start)
    return masters


def imported_by(*modules: str) -> set[str]:
    """The packages that are loaded with these modules."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {', '.join(modules)}"],
        cwd=Path(cli.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    return set(re.findall(r"\| +(\w+)$", told, re.MULTILINE))


def test_what_starts_spark_loads_nothing_that_decodes_rows() -> None:
    imported = imported_by("actors.task.resources.spark", "replicator.pipeline.spark.java")
    assert "pyspark" in imported
    assert imported & {"numba", "numpy", "pandas", "pyarrow", "aiomysql"} == set()


def test_what_starts_java_loads_nothing_of_spark() -> None:
    imported = imported_by(
        "replicator.pipeline.spark.java", "replicator.pipeline.spark.direct_launch"
    )
    assert "replicator" in imported
    assert imported & {"pyspark", "py4j", "numba", "numpy", "pandas", "aiomysql"} == set()


async def test_what_was_begun_is_what_is_waited_for(
    task: Task, closed: list[SparkContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    masters = started_by(monkeypatch, MADE)
    busy: list[SparkContext] = []
    monkeypatch.setattr(actors.task.resources.spark, "begin_tasks", busy.append)
    spark = TaskSpark(task)
    spark.begin()
    assert await spark.context() is MADE
    assert await spark.context() is MADE
    assert busy == [MADE]
    assert masters == [task.spark.master]
    await spark.close()
    assert closed == [MADE]


async def test_what_nobody_has_waited_for_is_ended(
    task: Task, closed: list[SparkContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    started_by(monkeypatch, MADE, OSError("no memory"))
    for _ in range(2):
        spark = TaskSpark(task)
        spark.begin()
        begun = spark._begun
        assert begun is not None
        await begun.done_unless(anyio.Event())
        await spark.close()
    assert closed == [MADE]


async def test_a_cluster_is_not_asked_before_it_is_needed(
    task: Task, closed: list[SparkContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    masters = started_by(monkeypatch, MADE)
    on_cluster = task.spark.model_copy(update={"master": "spark://10.0.0.1:7077"})
    spark = TaskSpark(task.model_copy(update={"spark": on_cluster}))
    spark.begin()
    assert spark._begun is None
    await spark.context()
    assert masters == ["spark://10.0.0.1:7077"]


async def test_an_opening_is_not_waited_for_where_something_else_is_wished() -> None:
    go_on = threading.Event()
    opening = Opening(go_on.wait)
    wished = anyio.Event()
    wished.set()
    assert not await opening.done_unless(wished)
    go_on.set()
    assert await opening.done_unless(anyio.Event())
    assert opening.result()

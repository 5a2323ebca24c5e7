"""A Spark job whose tasks stay: asked again and again, lost, ended, begun anew."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PythonException

from replicator.pipeline.session import COPIES_PER_CORE
from replicator.pipeline.workers import worker_pool as living_module
from replicator.pipeline.workers.frames import frame_of
from replicator.pipeline.workers.worker_pool import (
    WorkerPool,
    WorkerPoolError,
    free_slots,
    release_slots,
    reserve_slots,
    share_slots,
    worker_pool,
)

SLOTS = 2


def work(request: Any) -> bytes:
    """In a task: its process and the request, or what the request asks for."""
    match request:
        case "fail":
            raise ValueError("this can't be done")
        case ("wait", path):
            # Until the test closes its end, or kills this process.
            from multiprocessing.connection import Client

            with Client(path) as reporting:
                reporting.send(os.getpid())
                with contextlib.suppress(EOFError):
                    reporting.recv()
    return json.dumps([os.getpid(), request]).encode()


@pytest.fixture
def context(spark: SparkContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkContext]:
    """No worker pool before, and none of these after; each is complete, however busy the
    machine.
    """
    monkeypatch.setattr(living_module, "GATHER_SECONDS", 60.0)
    release_slots(spark)
    yield spark
    reserve_slots(spark, 0)
    release_slots(spark)


def ask(job: WorkerPool, request: object, most: int = SLOTS) -> list[tuple[int, Any]]:
    return told(job.ask(lambda tasks: [frame_of(request)] * tasks, most, sent=lambda: None))


def told(answers: list[bytes]) -> list[tuple[int, Any]]:
    return [(process, request) for process, request in map(json.loads, answers)]


def jobs_of(context: SparkContext) -> int:
    """How many Spark jobs there have been."""
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def test_tasks_stay_and_each_slot_has_one(context: SparkContext) -> None:
    job = worker_pool(context, work)
    first = ask(job, "one")
    before = jobs_of(context)
    assert len({process for process, _ in first}) == SLOTS
    for number in range(20):
        assert sorted(ask(job, number)) == sorted((process, number) for process, _ in first)
    (alone,) = ask(job, "alone", most=1)
    assert alone[0] in {process for process, _ in first}
    assert worker_pool(context, work) is job
    assert jobs_of(context) == before


def test_a_task_without_a_request_is_not_waited_for(context: SparkContext) -> None:
    job = worker_pool(context, work)
    answers = told(job.ask(lambda _: [None, frame_of("x")], SLOTS, sent=lambda: None))
    assert [request for _, request in answers] == ["x"]


def test_other_jobs_end_it_and_it_is_begun_again(context: SparkContext) -> None:
    for number in range(2):
        assert len(ask(worker_pool(context, work), number)) == SLOTS
        release_slots(context)
        assert context.parallelize(range(10), SLOTS).count() == 10


def test_it_ends_when_nobody_has_asked_for_long_and_is_begun_again(
    context: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    release_slots(context)
    monkeypatch.setattr(living_module, "IDLE_SECONDS", 0.05)
    idle = worker_pool(context, work)
    deadline = time.monotonic() + 60
    while worker_pool(context, work) is idle:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    monkeypatch.setattr(living_module, "IDLE_SECONDS", 60.0)
    job = worker_pool(context, work)
    assert len(ask(job, "again")) == SLOTS
    assert worker_pool(context, work) is job


def test_other_jobs_go_on_beside_it_where_it_lends_slots(context: SparkContext) -> None:
    whole = worker_pool(context, work)
    reserve_slots(context, free_slots(context))
    share_slots(context)
    assert not whole.serves()
    job = worker_pool(context, work)
    for number in range(3):
        assert len(ask(job, number)) == SLOTS - free_slots(context) == 1
        share_slots(context)
        assert context.parallelize(range(10), 1).count() == 10
    assert worker_pool(context, work) is job
    reserve_slots(context, 0)
    assert len(ask(worker_pool(context, work), "again")) == SLOTS


def test_a_local_spark_has_as_many_slots_again_for_what_waits_for_servers(
    context: SparkContext,
) -> None:
    job = worker_pool(context, work)
    assert len(ask(job, 0)) == context.defaultParallelism == SLOTS
    assert context.parallelize(range(10), SLOTS).barrier().mapPartitions(list).count() == 10
    assert worker_pool(context, work) is job


def test_what_goes_wrong_in_the_work_is_told(context: SparkContext) -> None:
    with pytest.raises(PythonException) as failed:
        ask(worker_pool(context, work), "fail")
    assert str(failed.value).strip().splitlines()[-1] == "ValueError: this can't be done"
    assert len(ask(worker_pool(context, work), "again")) == SLOTS


def kill(process: int) -> None:
    """End a process, and wait until it has ended."""
    ended = os.pidfd_open(process)
    try:
        os.kill(process, signal.SIGKILL)
        select.select([ended], [], [])
    finally:
        os.close(ended)


def waiting(listener: Listener, count: int) -> list[tuple[Connection, int]]:
    """So many tasks that are at a request, with their processes."""
    found = [listener.accept() for _ in range(count)]
    return [(connection, connection.recv()) for connection in found]


def test_a_task_that_is_killed_at_a_request_ends_the_job(
    context: SparkContext, tmp_path: Path
) -> None:
    job = worker_pool(context, work)
    path = str(tmp_path / "socket")
    with Listener(path) as listener, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, job, ("wait", path))
        tasks = waiting(listener, SLOTS)
        kill(tasks[0][1])
        with pytest.raises(WorkerPoolError, match="a task of the Spark job was lost"):
            asked.result()
        for connection, _ in tasks:
            connection.close()
    again = worker_pool(context, work)
    assert again is not job
    assert len(ask(again, "again")) == SLOTS


def test_tasks_that_are_killed_while_idle_are_no_failure(context: SparkContext) -> None:
    job = worker_pool(context, work)
    for process, _ in ask(job, "one"):
        kill(process)
    assert {request for _, request in ask(worker_pool(context, work), "two")} == {"two"}


def test_requests_while_tasks_are_killed_again_and_again(context: SparkContext) -> None:
    failed = 0
    for number in range(8):
        try:
            answers = ask(worker_pool(context, work), number)
        except (PySparkException, Py4JJavaError):
            # Of a job that Spark has given up, what Spark says.
            failed += 1
            continue
        assert {request for _, request in answers} == {number}
        kill(answers[0][0])
    assert failed < 8


def test_a_job_that_spark_cancels(context: SparkContext, tmp_path: Path) -> None:
    job = worker_pool(context, work)
    path = str(tmp_path / "socket")
    with Listener(path) as listener, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, job, ("wait", path), 1)
        ((connection, _),) = waiting(listener, 1)
        context.cancelAllJobs()
        with pytest.raises(Exception, match="cancelled"):
            asked.result()
        connection.close()
    assert len(ask(worker_pool(context, work), "again")) == SLOTS


def test_fewer_tasks_where_slots_are_taken(
    context: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(living_module, "GATHER_SECONDS", 0.0)
    path = str(tmp_path / "socket")

    def taken(rows: Any) -> Any:
        for row in rows:
            work(("wait", path))
            yield row

    others = SLOTS * COPIES_PER_CORE - 1
    with Listener(path) as listener, ThreadPoolExecutor(1) as pool:
        rows = context.parallelize(range(others), others)
        other = pool.submit(rows.mapPartitions(taken).collect)
        tasks = waiting(listener, others)
        assert len(ask(worker_pool(context, work), "one")) == 1
        for connection, _ in tasks:
            connection.close()
        assert len(other.result()) == others

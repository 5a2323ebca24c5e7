"""What other users of the machine, and whoever sees Spark's blocks, get of a running task: nothing.

The accounts are those of servers that nobody has: jobs fail to reach them, and say so.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import secrets
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, accumulators

from replicator.downstream.fence import Fence
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.copy.copy_chunk import CopyOutcome, CopySettings, copy_chunks
from replicator.pipeline.copy.copy_plan import CopyChunk, plan_copy
from replicator.pipeline.copy.copy_writing import OnDuplicate
from replicator.pipeline.duplicate_keys.key_collisions import compare_keys
from replicator.pipeline.duplicate_keys.key_plan import plan_key
from replicator.pipeline.session import _python_sockets
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.spark.spark_folder import newest_folder
from replicator.pipeline.workers.frames import frame_of
from replicator.pipeline.workers.worker import LocalAddress
from replicator.pipeline.workers.worker_pool import WorkerPool, release_slots, worker_pool
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.structure import Column, Table, UniqueKey
from tests.support.servers.other_user import (
    broadcasts,
    descendants,
    only_root,
    opened_by_stranger,
    overheard,
    ports_of,
    stolen_blocks,
)

OWNER_AND_MANAGER = "SparkEnv", "storage.BlockManager"
ATTEMPTS = 20
PASSWORD, ROW = secrets.token_hex(16), secrets.token_hex(16)
NOBODY = DatabaseAddress("127.0.0.1", 1, "nobody", PASSWORD)
SHARD = Table(
    "s", "t", (Column("id", "int"),), (UniqueKey("PRIMARY", ("id",)),), "CREATE TABLE t ()"
)


def work(request: Any) -> bytes:
    return json.dumps(request).encode()


@pytest.fixture
def context(spark: SparkContext) -> Iterator[SparkContext]:
    release_slots(spark)
    yield spark
    release_slots(spark)


def java_process() -> int:
    gateway = SparkContext._gateway
    assert gateway is not None
    return int(gateway.proc.pid)


def ask(job: WorkerPool, request: object) -> list[object]:
    return [*map(json.loads, job.ask(lambda _: [frame_of(request)], 1, sent=lambda: None))]


def newest_broadcast(context: SparkContext) -> int:
    return int(context._jsc.broadcast("x").id())


def block_manager(context: SparkContext) -> Any:
    """The one of the driver. Py4J looks at all methods of a class, and that of its owner has some
    for which PySpark does not ship the classes."""
    java: Any = context._jvm
    kinds = [java.java.lang.Class.forName(f"org.apache.spark.{name}") for name in OWNER_AND_MANAGER]
    find = java.java.lang.invoke.MethodHandles.publicLookup().findVirtual
    kind = java.java.lang.invoke.MethodType.methodType(kinds[1])
    owner = java.java.util.ArrayList()
    owner.add(context._jsc.sc().env())
    return find(kinds[0], "blockManager", kind).invokeWithArguments(owner)


def blocks(context: SparkContext) -> Iterator[bytes]:
    """All that Spark keeps of functions and what belongs to them."""
    named = context._jvm.org.apache.spark.storage.BlockId.apply  # type: ignore[union-attr]
    manager = block_manager(context)
    for name in broadcasts(newest_broadcast(context)):
        if manager.getStatus(named(name)).isDefined():
            # Spark may have just cleaned it away.
            with contextlib.suppress(Py4JJavaError):
                kept = manager.getLocalBlockData(named(name))
                content = bytes(kept.createInputStream().readAllBytes())
                # Else Spark would wait for this reader when it stops.
                kept.release()
                yield content


def apply(context: SparkContext) -> None:
    job = worker_pool(context, work)
    assert ask(job, [PASSWORD, ROW]) == [[PASSWORD, ROW]]


def copy(context: SparkContext) -> None:
    chunk = CopyChunk(plan_copy("a", SHARD, "f", SHARD, 0), 0, None, None)
    settings = CopySettings(
        NOBODY,
        {"a": NOBODY},
        {"a": OnDuplicate.REPLACE},
        "`m`.`c`",
        Fence("`m`.`l`", 1),
        frozenset(),
        load_data=False,
        patience=0.0,
    )
    (outcome,) = copy_chunks(context, [chunk], settings)
    assert (outcome.outcome, outcome.chunk) == (CopyOutcome.UNREACHABLE, chunk)


def compare(context: SparkContext) -> None:
    member = Member("a", TableName("s", "t"))
    shard = ComparedShard(member, SHARD, MemberColumns())
    read = plan_key(0, shard, SHARD, SHARD.keys[0])
    assert read is not None
    found = compare_keys(context, [[read]], CompareServers(NOBODY, {"a": NOBODY}))
    assert "127.0.0.1" in found[0].failures[member]


# Of the copy's function no part is long enough to be found in a compressed block.
@pytest.mark.parametrize(
    ("job", "function"), [(apply, b"worker"), (copy, b"LZ4Block"), (compare, b"key_")]
)
def test_no_account_and_no_row_is_in_a_block_of_spark(
    context: SparkContext, job: Callable[[SparkContext], None], function: bytes
) -> None:
    kept = b""
    # Spark cleans blocks away as soon as Java has collected what they were made for.
    for _ in range(ATTEMPTS):
        before = newest_broadcast(context)
        job(context)
        assert newest_broadcast(context) > before + 1
        kept += b"".join(blocks(context))
        if function in kept:
            break
    assert function in kept, "what the tasks run is there"
    for secret in (PASSWORD, ROW):
        assert secret.encode() not in kept
        assert secret.encode().hex().encode() not in kept


def test_what_is_sealed_reaches_the_tasks_and_nothing_of_it_is_left(context: SparkContext) -> None:
    def answer(told: str, task: int) -> list[bytes]:
        return [f"{task}: {told}".encode()]

    # Longer than what Spark writes as one text, and with letters of all lengths.
    told = "ä日😀\n\0" * 40_000 + PASSWORD
    assert run_in_tasks(context, 2, answer, told) == [f"{n}: {told}".encode() for n in range(2)]
    names = context._jsc.sc().getLocalProperties().stringPropertyNames()
    assert not [name for name in names if "sealed" in name]


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.mknod, (str(self.path),)


def test_a_pickle_that_a_task_answers_is_not_run(context: SparkContext, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "made"))
    assert run_in_tasks(context, 1, lambda _, __: [bomb], None) == [bomb]
    job = worker_pool(context, bytes)
    assert job.ask(lambda _: [frame_of(bomb)], 1, sent=lambda: None) == [bomb]
    assert not (tmp_path / "made").exists()


def test_what_tasks_add_up_is_not_unpickled(context: SparkContext, tmp_path: Path) -> None:
    release_slots(context)
    path = tmp_path / "made"

    def add(_: None, __: int) -> list[bytes]:
        # As a worker that somebody has taken over would: what it sends is of its own making.
        from pyspark.accumulators import Accumulator, AddingAccumulatorParam, _accumulatorRegistry

        bomb: Any = Bomb(path)
        _accumulatorRegistry[1] = Accumulator(1, bomb, AddingAccumulatorParam(0))
        return [b"done"]

    # Spark may give the job up, since nobody takes the values.
    with contextlib.suppress(Py4JJavaError):
        assert run_in_tasks(context, 1, add, None) == [b"done"]
    assert not path.exists()
    assert type(accumulators.pickleSer).__name__ != "CPickleSerializer"


@only_root
def test_another_user_gets_nothing_from_any_port(context: SparkContext) -> None:
    job = worker_pool(context, work)
    ask(job, ROW)
    ours, java = os.getpid(), java_process()
    assert java in descendants(ours)
    ports = ports_of([ours, *descendants(java)])
    assert ports, "at least Java listens for this process"
    heard = overheard(ports)
    for secret in (PASSWORD, ROW):
        assert secret.encode() not in heard
    assert stolen_blocks(ports, 20) == []


@only_root
def test_another_user_reaches_no_socket_and_no_file_of_the_session(context: SparkContext) -> None:
    ask(worker_pool(context, work), ROW)
    folder = Path(newest_folder())
    found = [path for path in folder.rglob("*") if path.is_socket() or path.is_file()]
    assert [path for path in found if path.name.startswith("pool-")]
    assert opened_by_stranger(found) == []


def test_python_listens_at_no_port(context: SparkContext) -> None:
    ask(worker_pool(context, work), ROW)
    java = java_process()
    assert ports_of([process for process in descendants(java) if process != java]) == []


@pytest.mark.parametrize("length", [59, 60, 61, 62, 64, 66, 200])
def test_java_and_python_talk_in_the_folder_of_the_session_whatever_it_is_called(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    above = tmp_path_factory.mktemp("s")
    folder = above / ("x" * (length - len(str(above)) - 1))
    folder.mkdir()
    assert len(str(folder)) == length
    settings = _python_sockets(str(folder))
    assert settings["spark.python.unix.domain.socket.enabled"] == "true"
    place = Path(settings["spark.python.unix.domain.socket.dir"], f".{uuid.uuid4()}.sock")
    # Spark refuses longer ones.
    assert len(str(place.parent)) < 61
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
    assert (folder / place.name).is_socket()


def test_tasks_of_this_host_come_in_by_no_port(context: SparkContext) -> None:
    before = ports_of([os.getpid()])
    job = worker_pool(context, work)
    assert isinstance(job._endpoint.point, LocalAddress)
    assert ask(job, ROW) == [ROW]
    assert ports_of([os.getpid()]) == before
    release_slots(context)
    assert not Path(job._endpoint.point.folder, job._endpoint.point.name).exists()


def test_no_secret_is_in_the_words_or_the_environment_of_a_process(context: SparkContext) -> None:
    def read(told: str, _: int) -> list[bytes]:
        from pyspark import TaskContext

        assert told == PASSWORD
        task = TaskContext.get()
        assert task is not None
        return [b"%d" % os.getpid()]

    ask(worker_pool(context, work), PASSWORD)
    run_in_tasks(context, 1, read, PASSWORD)
    hadoop: Any = context._jvm.org.apache.hadoop  # type: ignore[union-attr]
    user = hadoop.security.UserGroupInformation.getCurrentUser()
    drawn = bytes(user.getCredentials().getSecretKey(hadoop.io.Text("sparkCookie")))
    assert len(drawn) >= 32
    for process in descendants(os.getpid()):
        for name in ("cmdline", "environ"):
            try:
                words = Path(f"/proc/{process}/{name}").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            assert drawn not in words
            assert PASSWORD.encode() not in words


OPEN = """
import json, sys
from pyspark import SparkContext
from replicator.pipeline.session import close_spark, spark_context
from tests.integration.spark import test_unauthenticated_peers as own
from tests.support.servers.other_user import ports_of, stolen_blocks
spark = spark_context("local[1]", {"spark.authenticate": "false"}, "test")
own.apply(spark)
own.copy(spark)
own.compare(spark)
ports = ports_of([SparkContext._gateway.proc.pid])
stolen = stolen_blocks(ports, own.newest_broadcast(spark))
print(json.dumps([len(stolen), own.PASSWORD.encode() in b"".join(stolen)]))
close_spark(spark)
"""


@only_root
@pytest.mark.slow
def test_not_even_a_spark_that_is_open_to_all_gives_a_secret_away() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OPEN], capture_output=True, text=True, timeout=300, check=True
    )
    *log, told = done.stdout.splitlines()
    count, found = json.loads(told)
    assert count, "another user gets blocks of this one"
    assert not found
    assert "spark.unauthenticated" in "".join(log) + done.stderr

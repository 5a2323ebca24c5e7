"""Spark jobs that consist of a Python function, as an RDD without data, and their secrets.

A DataFrame is not used: with the first one, Java loads Spark SQL, plans, and compiles code for the
plan. This took longer than everything else at the start of a task, and loaded twice as many
classes.
"""

from __future__ import annotations

import base64
import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from pyspark import SparkContext, TaskContext
from pyspark.serializers import NoOpSerializer

Argument = TypeVar("Argument")


SEALED = "replicator.sealed.secret"
"""The name of the property. Spark leaves the values of such names out of its event log if the
application has a setting of the same name (``EventLoggingListener.redactProperties``). The name
must not begin with ``spark``: Spark SQL overwrites such properties with its settings."""

SETTINGS = {SEALED: "none"}
"""The setting that every application has for this purpose."""


@contextlib.contextmanager
def sealed(spark: SparkContext, argument: object) -> Iterator[None]:
    """Pass a secret ``argument`` to the tasks of the jobs that this thread submits in the block.

    For accounts, keys and secrets. Spark puts the functions of a job into blocks, which its block
    managers serve and keep. A sealed argument is a local property of the job instead: it is part of
    the message by which Spark launches a task, over the authenticated channel between driver and
    executor, and is passed to the Python worker. Nothing stores it. Source: Spark's
    ``TaskDescription``, ``PythonRunner``.

    Raises Py4JError without a JVM.
    """
    spark.setLocalProperty(SEALED, base64.b64encode(pickle.dumps(argument)).decode("ascii"))
    try:
        yield
    finally:
        spark._jsc.setLocalProperty(SEALED, None)


def unsealed() -> Any:
    """Return the argument of `sealed`, inside a task."""
    task = TaskContext.get()
    assert task is not None, "only tasks have sealed arguments"
    sealed_text = task.getLocalProperty(SEALED)
    assert sealed_text is not None, "the job has no sealed argument"
    return pickle.loads(base64.b64decode(sealed_text))  # nosec B301  (from the driver, over its channel)


def run_in_tasks(
    spark: SparkContext,
    tasks: int,
    function: Callable[[Argument, int], Iterable[bytes]],
    argument: Argument,
) -> list[bytes]:
    """Call a function once in each of ``tasks`` tasks, and return the results.

    The function's arguments are ``argument``, which is sealed, and the number of the task. The
    function itself is stored in blocks of Spark, so it must have no secret. Its results are bytes
    and are not unpickled here, so an executor under foreign control can't run anything in this
    process. Blocks. Raises PythonException if the function failed, Py4JJavaError if Spark failed
    the job, and Py4JError, OSError or EOFError without a JVM.
    """
    nothing: Any = spark.parallelize([], tasks)
    job = nothing.mapPartitionsWithIndex(partial(_called, function))
    # By default, PySpark pickles the results of tasks.
    job._jrdd_deserializer = NoOpSerializer()
    with sealed(spark, argument):
        found: list[bytes] = job.collect()
    return found


def _called(
    function: Callable[[Any, int], Iterable[bytes]], task: int, rows: Iterable[Any]
) -> Iterator[bytes]:
    # Spark reuses a Python process only if the task has read its input to the end.
    for _ in rows:
        raise AssertionError("there are no rows")
    yield from function(unsealed(), task)

"""Spark jobs that are a Python function and nothing else, an RDD without data; and their secrets.

Not a DataFrame: with the first one Java loads Spark SQL, plans, and compiles code for the plan.
That took longer than all else at the start of a task, and twice as many classes.
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
"""The name of the property. Spark leaves the values of such names out of its event log, if the
application has a setting of the same name (``EventLoggingListener.redactProperties``). Spark SQL
puts its settings over properties whose names begin with ``spark``."""

SETTINGS = {SEALED: "none"}
"""The setting that every application has for that reason."""


@contextlib.contextmanager
def sealed(spark: SparkContext, argument: object) -> Iterator[None]:
    """Have the jobs that this thread submits meanwhile give ``argument`` to their tasks.

    It is told in confidence: accounts, keys, secrets. Spark puts the functions of a job into
    blocks, which its block managers serve and keep. A sealed argument is a local property of the
    job instead: it travels in the message by which Spark launches a task, over the authenticated
    channel between driver and executor, and from there to the Python worker. Nothing stores it.
    Source: Spark's ``TaskDescription``, ``PythonRunner``.

    Raises Py4JError without a JVM.
    """
    spark.setLocalProperty(SEALED, base64.b64encode(pickle.dumps(argument)).decode("ascii"))
    try:
        yield
    finally:
        spark._jsc.setLocalProperty(SEALED, None)


def unsealed() -> Any:
    """In a task: the argument that was given to `sealed`."""
    task = TaskContext.get()
    assert task is not None, "only tasks have sealed arguments"
    sealed_text = task.getLocalProperty(SEALED)
    assert sealed_text is not None, "the job has no sealed argument"
    return pickle.loads(base64.b64decode(sealed_text))  # nosec B301  (told by the driver, over its channel)


def run_in_tasks(
    spark: SparkContext,
    tasks: int,
    function: Callable[[Argument, int], Iterable[bytes]],
    argument: Argument,
) -> list[bytes]:
    """What a function gives, called once in each of so many tasks, with an argument that only the
    tasks are told and the number of the task.

    The function itself goes into blocks of Spark, so it holds no secret. What it gives is bytes,
    and is not unpickled here: an executor that somebody has taken over can't run anything in this
    process. Blocks. Raises PythonException where the function did, Py4JJavaError where Spark failed
    the job, and Py4JError, OSError or EOFError without a JVM.
    """
    nothing: Any = spark.parallelize([], tasks)
    job = nothing.mapPartitionsWithIndex(partial(_called, function))
    # By itself PySpark pickles what tasks give.
    job._jrdd_deserializer = NoOpSerializer()
    with sealed(spark, argument):
        found: list[bytes] = job.collect()
    return found


def _called(
    function: Callable[[Any, int], Iterable[bytes]], task: int, rows: Iterable[Any]
) -> Iterator[bytes]:
    # Spark uses a Python process again where the task has read its input up to the end.
    for _ in rows:
        raise AssertionError("there are no rows")
    yield from function(unsealed(), task)

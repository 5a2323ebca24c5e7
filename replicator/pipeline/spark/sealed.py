"""What a job tells its tasks in confidence: accounts, keys, secrets.

Spark puts the functions of a job into blocks, which its block managers serve and keep. A sealed
argument is a local property of the job instead: it travels in the message by which Spark launches a
task, over the authenticated channel between driver and executor, and from there to the Python
worker. Nothing stores it. Source: Spark's ``TaskDescription``, ``PythonRunner``.
"""

from __future__ import annotations

import base64
import contextlib
import pickle
from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext, TaskContext

SEALED = "replicator.sealed.secret"
"""The name of the property. Spark leaves the values of such names out of its event log, if the
application has a setting of the same name (``EventLoggingListener.redactProperties``). Spark SQL
puts its settings over properties whose names begin with ``spark``."""

SETTINGS = {SEALED: "none"}
"""The setting that every application has for that reason."""


@contextlib.contextmanager
def sealed(spark: SparkContext, argument: object) -> Iterator[None]:
    """Have the jobs that this thread submits meanwhile give ``argument`` to their tasks.

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
    told = task.getLocalProperty(SEALED)
    assert told is not None, "the job has no sealed argument"
    return pickle.loads(base64.b64decode(told))  # nosec B301  (told by the driver, over its channel)

"""A Spark job that is a Python function and nothing else: an RDD without data.

Not a DataFrame: with the first one Java loads Spark SQL, plans, and compiles code for the plan.
That took longer than all else at the start of a task, and twice as many classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer

from replicator.pipeline.spark.sealed import sealed, unsealed

Argument = TypeVar("Argument")


def run_in_tasks(
    spark: SparkContext,
    tasks: int,
    function: Callable[[Argument, int], Iterable[bytes]],
    argument: Argument,
) -> list[bytes]:
    """What a function gives, called once in each of so many tasks, with an argument that only the
    tasks are told (`replicator.pipeline.spark.sealed`) and the number of the task.

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

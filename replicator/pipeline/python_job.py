"""A Spark job that is a Python function and nothing else: an RDD without data.

Not a DataFrame: with the first one Java loads Spark SQL, plans, and compiles code for the plan.
That took longer than all else at the start of a task, and twice as many classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from pyspark import SparkContext

T = TypeVar("T")


def run_in_tasks(
    spark: SparkContext, tasks: int, function: Callable[[int], Iterable[T]]
) -> list[T]:
    """What a function gives, called once in each of so many tasks, with the number of the task.

    Blocks. Raises PythonException where the function did, Py4JJavaError
    where Spark failed the job, and Py4JError, OSError or EOFError without a JVM.
    """
    nothing: Any = spark.parallelize([], tasks)
    found: list[T] = nothing.mapPartitionsWithIndex(partial(_called, function)).collect()
    return found


def _called(function: Callable[[int], Iterable[T]], task: int, rows: Iterable[Any]) -> Iterator[T]:
    # Spark uses a Python process again where the task has read its input up to the end.
    for _ in rows:
        raise AssertionError("there are no rows")
    yield from function(task)

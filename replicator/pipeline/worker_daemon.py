"""The process that Spark forks its Python workers from, with our modules loaded beforehand.

Spark ends workers that were idle for a minute; a new one is then ready at once. Named by
``spark.python.daemon.module``.

On the host of a task it is a fork of the task, which has most of them already
(`replicator.pipeline.spark.worker_fork`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from socket import socket

from replicator.pipeline.spark.worker_fork import join_worker_fork


def without_packed(paths: list[str], spark: str) -> list[str]:
    """The places of modules without what Spark puts before them, an archive of its Python modules.

    They are read from their sources then, which takes a second. Where ``spark``, its folder, is
    the installed package, the same modules are there, already compiled.
    """
    home = os.path.realpath(spark)
    known = [os.path.realpath(path) for path in paths]
    if not os.path.isfile(os.path.join(home, "__init__.py")) or os.path.dirname(home) not in known:
        return paths
    return [
        path
        for path, place in zip(paths, known, strict=True)
        if not place.startswith(home + os.sep)
    ]


ALLOCATIONS_BETWEEN_COLLECTIONS = 500_000
"""The rows of a batch are many small objects without cycles. Looking through them for garbage
every 700 of them took as long as the net effect itself."""

OLDEST_PYTHON = (3, 11)

Work = Callable[[socket, bool], int]
"""Does what Spark asks for over a connection; its exit code."""


def load() -> None:
    """Load what forked workers are to have."""
    import pyspark.daemon
    import pyspark.worker  # noqa: F401

    if sys.version_info >= OLDEST_PYTHON:
        # A package that this machine lacks, or a Python that is too old, is told by a job that asks
        # for it (`replicator.pipeline.spark.cluster`): without this process there could be none.
        with contextlib.suppress(ImportError):
            import replicator.pipeline.apply.job
            import replicator.pipeline.workers.worker  # noqa: F401


def ending_quietly(work: Work) -> Work:
    """The same worker, which ends without a traceback where Spark has closed its connection.

    Spark does so with a task that it ends, as when a task of ours pauses or stops: what the worker
    would still say to it nobody waits for.
    """

    def worker(connection: socket, authenticated: bool) -> int:
        try:
            return work(connection, authenticated)
        except ConnectionError:
            return 1

    return worker


def manage() -> None:
    """Fork workers for Spark, until it closes the standard input."""
    from pyspark import daemon

    # What is loaded now lives as long as the workers: never look at it for garbage again.
    gc.freeze()
    gc.enable()
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    daemon.worker = ending_quietly(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


if __name__ == "__main__":
    # Among modules that are being loaded there is none, and looking takes a sixth of that time.
    gc.disable()
    sys.path[:] = without_packed(sys.path, os.environ.get("SPARK_HOME", ""))
    join_worker_fork()
    load()
    manage()

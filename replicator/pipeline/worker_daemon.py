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
    """Return the paths of modules without those that Spark adds, an archive of its Python modules.

    Reading these from their sources takes a second. If ``spark``, its folder, is the installed
    package, it has the same modules, already compiled.
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
"""The rows of a batch are many small objects without cycles. A search for garbage after every
700 of them took as long as the net effect itself."""

OLDEST_PYTHON = (3, 11)

Work = Callable[[socket, bool], int]
"""Does what Spark asks for over a connection; returns its exit code."""


def load() -> None:
    """Load the modules for forked workers."""
    import pyspark.daemon
    import pyspark.worker  # noqa: F401

    if sys.version_info >= OLDEST_PYTHON:
        # A missing package, or a Python that is too old, is reported by a job that checks for it
        # (`replicator.pipeline.spark.cluster`), and that job needs this process.
        with contextlib.suppress(ImportError):
            import replicator.pipeline.apply.job
            import replicator.pipeline.workers.worker  # noqa: F401


def ending_quietly(work: Work) -> Work:
    """Return the worker without a traceback at its end if Spark has closed its connection.

    Spark does so with a task that it ends, as when a task of ours pauses or stops: nobody waits for
    further output of the worker.
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

    # The modules loaded now live as long as the workers: exclude them from garbage collection.
    gc.freeze()
    gc.enable()
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    daemon.worker = ending_quietly(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


if __name__ == "__main__":
    # Loading modules leaves no garbage, and searching for it takes a sixth of that time.
    gc.disable()
    sys.path[:] = without_packed(sys.path, os.environ.get("SPARK_HOME", ""))
    join_worker_fork()
    load()
    manage()

"""The process from which Spark forks its Python workers, with our modules loaded beforehand.

Spark ends workers that were idle for a minute; with this daemon, a new one is ready at once. The
setting ``spark.python.daemon.module`` names this module.

On the host of a task, the daemon is a fork of the task, which has most modules already
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
    """Return the module paths without the archive of Python modules that Spark adds.

    Reading these modules from their sources takes a second. If ``spark``, its folder, is the
    installed package, this has the same modules, already compiled.
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
"""The rows of a batch are many small objects without cycles. A garbage collection after every 700
objects took as long as the net effect itself."""

OLDEST_PYTHON = (3, 11)

Work = Callable[[socket, bool], int]
"""Does the work that Spark requests over a connection; returns its exit code."""


def load() -> None:
    """Load the modules for forked workers."""
    import pyspark.daemon
    import pyspark.worker  # noqa: F401

    if sys.version_info >= OLDEST_PYTHON:
        # A job reports a missing package, or a Python that is too old
        # (`replicator.pipeline.spark.cluster`), and that job needs this process.
        with contextlib.suppress(ImportError):
            import replicator.pipeline.apply.job
            import replicator.pipeline.workers.worker  # noqa: F401


def ending_quietly(work: Work) -> Work:
    """Return the worker without a traceback at its end if Spark has closed its connection.

    Spark does so with a task that it ends, for example when a task of ours pauses or stops: nobody
    waits for further output of the worker.
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

    # The modules loaded now are used as long as the workers run: exclude them from garbage
    # collection.
    gc.freeze()
    gc.enable()
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    daemon.worker = ending_quietly(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


if __name__ == "__main__":
    # Loading modules creates no garbage, but collecting takes a sixth of the loading time.
    gc.disable()
    sys.path[:] = without_packed(sys.path, os.environ.get("SPARK_HOME", ""))
    join_worker_fork()
    load()
    manage()

"""The process that Spark forks its Python workers from, with our modules loaded beforehand.

Spark ends workers that were idle for a minute; a new one is then ready at once. Named by
``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import replicator.pipeline.job  # noqa: F401  # loaded here, so that forked workers have it

if __name__ == "__main__":
    # What is loaded now lives as long as the workers: never look at it for garbage again.
    gc.freeze()
    manager()

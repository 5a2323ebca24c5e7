"""Starting the JVM of a Spark session, so that what it says goes into the log, line by line.

PySpark lets it write to the standard error output of this process, where a log of JSON lines would
have text in between.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Mapping
from socketserver import BaseServer
from typing import BinaryIO

import structlog
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.java_gateway import launch_gateway

_ALWAYS_SAID = ("WARNING: Using incubator modules:",)
"""What every JVM says that Spark starts, and means nothing to anybody."""


def start_jvm(launch: Callable[[int], JavaGateway]) -> None:
    """Start the JVM for Spark, unless this process has one already.

    ``launch`` is given the descriptor that the JVM is to write to. Raises PySparkException where it
    ends at once, and OSError.
    """
    if SparkContext._gateway is not None:
        return
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _log_lost_worker  # type: ignore[method-assign, assignment]
    read, write = os.pipe()
    output = os.fdopen(read, "rb")
    try:
        threading.Thread(target=_log_lines, args=(output,), daemon=True).start()
        gateway = launch(write)
    finally:
        os.close(write)
    SparkContext._ensure_initialized(gateway=gateway)


def launch_by_spark(settings: Mapping[str, str], output: int) -> JavaGateway:
    """Have Spark's own scripts start the JVM, with these settings. Raises as `start_jvm` does."""
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    return launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]


def _log_lost_worker(server: BaseServer, request: object, client: object) -> None:
    """Log why a connection from the JVM broke off; by itself Python prints it (`socketserver`)."""
    structlog.get_logger().info("spark.output", text=traceback.format_exc().rstrip())


def _log_lines(output: BinaryIO) -> None:
    """Log what the JVM and its Python workers say, until the last of them has ended."""
    log = structlog.get_logger()
    with output:
        for line in output:
            text = line.decode("utf-8", "replace").rstrip()
            if text.startswith(_ALWAYS_SAID):
                log.debug("spark.output", text=text)
            elif text:
                log.info("spark.output", text=text)

"""Starts the JVM of a Spark session, and logs its output line by line.

PySpark lets the JVM write to the standard error output of this process, so that there would be text
in a log of JSON lines.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Mapping
from socketserver import BaseServer
from typing import BinaryIO, NoReturn

import structlog
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext, accumulators
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import CPickleSerializer, UTF8Deserializer, read_int
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from replicator.pipeline.spark.cluster import AUTHENTICATE
from replicator.pipeline.spark.direct_launch import StartedJava

LOOK_SECONDS = 0.01
"""Seconds between two checks for Java's port in its file: the start takes about a second."""

_OF_NUMPY = (NumpyArrayConverter, NumpyScalarConverter)

_ALWAYS_SAID = (
    "WARNING: Using incubator modules:",
    "WARNING: package sun.security.action not in java.base",
)
"""Messages that every JVM of Spark prints, the latter since Java 24; meaningless to users."""


class _NoUpdates(CPickleSerializer):
    """Replaces PySpark's reader of accumulator updates.

    They are pickles, which an executor under foreign control could send. Our jobs have none.
    """

    def _read_with_length(self, stream: BinaryIO) -> NoReturn:
        raise PySparkRuntimeError("a task has sent values for an accumulator, and there is none")


def warn_of_openness(settings: Mapping[str, str]) -> None:
    """Warn if these settings admit anybody who can connect to a port of Spark."""
    if settings.get(AUTHENTICATE, "").strip().lower() == "false":
        structlog.get_logger().warning(
            "spark.unauthenticated",
            reason=f"{AUTHENTICATE} is false in spark.conf: whoever reaches a port of this Spark"
            " can read what it keeps and run programs as its user",
            remedy=f"remove {AUTHENTICATE} from spark.conf; on a standalone cluster, give master,"
            " workers and spark.conf the same spark.authenticate.secret (docs/how-to/cluster.md)",
        )


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM with these settings, by Spark's own scripts.

    Raises PySparkException if it ends at once.
    """
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    read, write = os.pipe()
    _log_output(os.fdopen(read, "rb"))
    try:
        gateway = launch_gateway(conf, {"stdout": write, "stderr": write})  # type: ignore[no-untyped-call]
    finally:
        os.close(write)
    _use(gateway)


def adopt_jvm(java: StartedJava) -> None:
    """Wait for a JVM that was started before, and use it. Raises the errors of `start_jvm`."""
    _log_output(java.output)
    while not java.connection_info.exists():
        if java.process.poll() is not None:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(LOOK_SECONDS)
    with java.connection_info.open("rb") as written:
        port = read_int(written)  # type: ignore[no-untyped-call]
        secret = UTF8Deserializer().loads(written)  # type: ignore[no-untyped-call]
    java.connection_info.unlink()
    # PySpark connects to a running Java if these variables are set.
    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(given)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            del os.environ[name]
    gateway.proc = java.process
    _use(gateway)


def _use(gateway: JavaGateway) -> None:
    # With the first value that is passed to Java, PySpark's converters of numpy values load test
    # tools, and pandas if it is installed: half a second. No numpy values are passed.
    client = gateway._gateway_client
    client.converters = [c for c in client.converters if not isinstance(c, _OF_NUMPY)]
    SparkContext._ensure_initialized(gateway=gateway)
    accumulators.pickleSer = _NoUpdates()


def _log_output(output: BinaryIO) -> None:
    """Log the JVM's output, and Python's messages about the connections to it."""
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _log_lost_worker  # type: ignore[method-assign, assignment]
    threading.Thread(target=_log_lines, args=(output,), daemon=True).start()


def _log_lost_worker(server: BaseServer, request: object, client: object) -> None:
    """Log why a connection from the JVM broke.

    By default, Python prints the error (`socketserver`).
    """
    structlog.get_logger().info("spark.output", text=traceback.format_exc().rstrip())


def _log_lines(output: BinaryIO) -> None:
    """Log the output of the JVM and its Python workers, until the last of these has ended."""
    log = structlog.get_logger()
    with output:
        for line in output:
            text = line.decode("utf-8", "replace").rstrip()
            if text.startswith(_ALWAYS_SAID):
                log.debug("spark.output", text=text)
            elif text:
                log.info("spark.output", text=text)

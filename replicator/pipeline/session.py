"""The Spark application of a task: private to this process, quiet, and quick with small jobs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import install_exception_handler
from pyspark.sql import SparkSession

from replicator.pipeline.apply.pool_work import work_on
from replicator.pipeline.spark.cluster import (
    AUTHENTICATE,
    cluster_settings,
    cut_off,
    examine_executors,
    is_local,
    ship_package,
    turned_away,
)
from replicator.pipeline.spark.direct_launch import (
    StartedJava,
    goes_directly,
    share_modules,
    start_java,
)
from replicator.pipeline.spark.java import (
    JAVA_OPTIONS,
    driver_memory,
    driver_options,
    find_java_home,
)
from replicator.pipeline.spark.python_job import SETTINGS
from replicator.pipeline.spark.spark_folder import make_folder
from replicator.pipeline.workers.worker_pool import WorkerPool, release_slots, worker_pool

JVM_PATIENCE = 30.0
"""Maximum seconds until a stopped JVM has ended. The first JVM of a host then archives Spark's
classes, which takes 5 to 10 s (`replicator.pipeline.spark.java`)."""

COPIES_PER_CORE = 2
"""Number of copy jobs that a local Spark runs for each of its cores: while one waits for a server's
disk, or for a commit, another one continues (docs/inside/performance.md). Batches use one core
each."""

_SOCKET_FOLDER_BYTES = 60
"""Maximum length of the name of a folder in which Spark creates the sockets of Python (its check of
``spark.python.unix.domain.socket.dir``)."""

_SECRET = re.compile("(?i)secret|password|token|access[.]?key")
"""Names of settings that Spark itself does not show (``spark.redaction.regex``)."""


def spark_context(
    master: str, conf: Mapping[str, str], task_name: str, java: StartedJava | None = None
) -> SparkContext:
    """Start Spark, or return the application that already runs in this process.

    On a cluster, our package is sent to the executors. Raises JavaMissingError,
    `replicator.pipeline.spark.cluster.ClusterError`, and Spark's errors.

    Args:
        master: Spark's master URL.
        conf: settings that replace the ones made here.
        java: the Java that was started for Spark, if that was possible.
    """
    if SparkContext._active_spark_context is not None:
        return SparkContext._active_spark_context
    os.environ["JAVA_HOME"] = java_home = find_java_home()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "spark.pyspark.python" in conf:
        # PySpark reads this setting itself only in spark-submit.
        os.environ["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if java is None and goes_directly(master, conf, os.environ):
        java = start_java(conf)
    folder = make_folder() if java is None else java.folder
    settings = _settings(master, conf, folder) | {"spark.app.name": f"replicator {task_name}"}
    # Imported here, since executors import this module, too, and lack the packages for logging.
    from replicator.pipeline.spark.jvm import adopt_jvm, start_jvm, warn_of_openness

    warn_of_openness(settings)
    try:
        if java is not None:
            adopt_jvm(java)
        else:
            settings = _submitted(settings, conf, driver_options(java_home, conf, folder), folder)
            start_jvm(settings)
        settings |= SETTINGS | _local_slots(settings)
        spark = SparkContext.getOrCreate(_spark_conf(settings))
        # Exceptions of Python functions in executors are raised here with their own type. By
        # default, PySpark does this only with Spark SQL.
        install_exception_handler()
        spark.setLogLevel("ERROR")
        if not is_local(master):
            ship_package(spark, Path(folder))
    except (PySparkException, Py4JError) as error:
        cause = turned_away(error) or _kept(error)
        _forget_jvm()
        raise cause from None
    return spark


def _settings(master: str, conf: Mapping[str, str], folder: str) -> dict[str, str]:
    settings = {**_defaults(folder), **conf}
    if not is_local(master):
        settings.update(cluster_settings(conf, JAVA_OPTIONS))
    else:
        share_modules()
        settings = _python_sockets(folder) | settings
        settings.setdefault("spark.driver.host", "127.0.0.1")
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
        # A shuffle of a local Spark uses a local file: compressing it costs more than it saves.
        settings.setdefault("spark.shuffle.compress", "false")
        # For a local master without this, a failed task ends the job at once.
        match = re.fullmatch(r"local(?:\[([^],]+)\])?", master)
        if match:
            master = f"local[{match[1] or 1},{settings['spark.task.maxFailures']}]"
    return settings | {"spark.master": master}


def _python_sockets(folder: str) -> dict[str, str]:
    """Return the settings for communication between Java and Python by Unix sockets.

    The sockets are in the folder of the session. With ports, any user could have a process forked
    by each connection, or be the first client that Spark waits for.
    """
    place = folder
    if len(os.fsencode(folder)) > _SOCKET_FOLDER_BYTES:
        # A short name of the same folder, since the path of a socket is limited. The folder stays
        # open as long as this process runs.
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        place = f"/proc/{os.getpid()}/fd/{descriptor}"
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": place,
    }


def _local_slots(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that give a local Spark slots for copies in addition to its cores.

    A batch still has as many tasks as there are cores. The JVM must run already.
    """
    match = re.fullmatch(r"local\[(\*|\d+),(.+)\]", settings["spark.master"])
    if match is None:
        return {}
    # As counted by Java, which considers the limits of a container.
    processors = SparkContext._jvm.java.lang.Runtime.getRuntime().availableProcessors  # type: ignore[union-attr]
    cores = int(processors()) if match[1] == "*" else int(match[1])
    return {
        "spark.master": f"local[{cores * COPIES_PER_CORE},{match[2]}]",
        "spark.default.parallelism": settings.get("spark.default.parallelism", str(cores)),
    }


def _submitted(
    settings: Mapping[str, str], conf: Mapping[str, str], java_options: str, folder: str
) -> dict[str, str]:
    """Set the variable from which `spark-submit` reads the JVM's options before there is a session.

    Returns the other settings; a file has the secret ones.
    """
    secret = {name: value for name, value in conf.items() if _SECRET.search(name)}
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--driver-memory {driver_memory(conf)}"
        f" --driver-java-options {shlex.quote(java_options)}"
        f" {_secret_file(secret, folder) if secret else ''} pyspark-shell"
    )
    return {name: value for name, value in settings.items() if name not in secret}


def ready(spark: SparkContext) -> SparkContext:
    """Return the application when its executors are checked and warm.

    Raises `replicator.pipeline.spark.cluster.ClusterError`, and Spark's errors, after stopping the
    application.
    """
    try:
        if not is_local(spark.master or ""):
            examine_executors(spark)
        warm_up(spark)
    except (PySparkException, Py4JError) as error:
        cause = turned_away(error) or cut_off(error) or _kept(error)
        close_spark(spark)
        raise cause from None
    except BaseException:
        close_spark(spark)
        raise
    return spark


def close_spark(spark: SparkContext) -> None:
    """Stop Spark and its JVM, even if the JVM has died.

    Then `spark_context` can start another one.
    """
    try:
        with warnings.catch_warnings():
            # Spark warns that the JVM may have crashed, but this is known here.
            warnings.simplefilter("ignore", RuntimeWarning)
            release_slots(spark)
            spark.stop()
    except (Py4JError, OSError):
        # The JVM is gone: PySpark gave up before the end, and would continue to use the dead JVM.
        spark.stop()
    _forget_jvm()


def _kept(error: Exception) -> Py4JError:
    """Return an error of the JVM with its text, which otherwise is requested from the JVM."""
    try:
        return Py4JError(str(error))
    except (Py4JError, OSError):
        return Py4JError(f"the JVM has ended ({type(error).__name__})")


def _forget_jvm() -> None:
    """End the JVM, and remove PySpark's references to it."""
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SparkContext._active_spark_context = None
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    # The JVM ends at the end of its input.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(JVM_PATIENCE)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def begin_tasks(spark: SparkContext) -> WorkerPool:
    """Begin the worker pool, whose tasks load their modules while the driver does other work.

    Raises the errors of `replicator.pipeline.workers.worker_pool.worker_pool`.
    """
    return worker_pool(spark, work_on)


def warm_up(spark: SparkContext) -> None:
    """Wait until the tasks for a first batch are ready."""
    begin_tasks(spark).await_tasks()


def _secret_file(settings: Mapping[str, str], folder: str) -> str:
    """Return the arguments that name a private file with settings.

    PySpark puts all other settings among the arguments of the JVM, which every user of the machine
    can read.
    """
    lines = [
        f"{name} " + value.replace("\\", "\\\\").replace("\n", "\\n")
        for name, value in settings.items()
    ]
    path = Path(folder, "secret.properties")
    path.touch(mode=0o600)
    path.write_text("\n".join(lines), encoding="utf-8")
    return f"--properties-file {shlex.quote(str(path))} --load-spark-defaults"


def _spark_conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def _defaults(folder: str) -> dict[str, str]:
    return {
        # Otherwise anybody who reaches a port of Spark can read all of its blocks, and run any
        # code. Java generates the secret of a local Spark itself.
        AUTHENTICATE: "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": str(Path(folder, "warehouse")),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        # Plans are tiny and known: adapting them costs more than the jobs do.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "replicator.pipeline.worker_daemon",
        # Operations that can be retried are retried inside a task.
        "spark.task.maxFailures": "2",
        "spark.cleaner.periodicGC.interval": "10min",
        "spark.log.structuredLogging.enabled": "false",
    }

"""Starting Java for a Spark of this host at once, without the scripts and the Java before it.

`spark-submit` is two shell scripts, a Java that works out the command line of the next one, and in
that a program that looks at its arguments: longer than Spark itself takes to start. What it works
out is known here, unless the installation or the task file set something that it alone obeys; then
it is used (`goes_directly`). The command is that of `spark-submit` without the module
``jdk.incubator.vector``, which only Spark's machine learning uses; a test compares the two.
Source: Spark's ``AbstractCommandBuilder``, ``SparkSubmitCommandBuilder``, ``JavaModuleOptions``.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from py4j.java_gateway import JavaGateway
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from replicator.pipeline.class_archive import SPARK

_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
"""Ends at the end of its input, and so with this process."""

_LOOK_SECONDS = 0.01
"""Between two looks whether Java has written down where it listens: it takes a second or so."""

_OPENED = (
    *(
        f"java.base/{package}"
        for package in (
            "java.lang",
            "java.lang.invoke",
            "java.lang.reflect",
            "java.io",
            "java.net",
            "java.nio",
            "java.util",
            "java.util.concurrent",
            "java.util.concurrent.atomic",
            "jdk.internal.ref",
            "sun.nio.ch",
            "sun.nio.cs",
            "sun.security.action",
            "sun.util.calendar",
        )
    ),
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""What Spark needs of a Java since 17, those of later Javas too."""

_READ_BY_SPARK_ITSELF = (
    "spark.cleaner.",
    "spark.default.parallelism",
    "spark.driver.bindAddress",
    "spark.driver.extraJavaOptions",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.driver.port",
    "spark.eventLog.",
    "spark.local.dir",
    "spark.locality.",
    "spark.memory.",
    "spark.network.",
    "spark.pyspark.python",
    "spark.python.",
    "spark.replicator.",
    "spark.rpc.",
    "spark.scheduler.",
    "spark.shuffle.",
    "spark.sql.",
    "spark.task.",
    "spark.ui.",
)
"""How settings begin that the running Spark reads, and nothing before it."""

_SET_BY_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""Variables that it leaves in this process, whose Spark may be started anew."""


def goes_directly(master: str, conf: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether nothing is set that `spark-submit` alone obeys.

    ``conf``: the settings of the task file.
    """
    options = conf.get("spark.driver.extraJavaOptions", "")
    return (
        re.fullmatch(r"local(\[[^\]]*\])?", master) is not None
        and all(name.startswith(_READ_BY_SPARK_ITSELF) for name in conf)
        # It refuses these, and says what to write.
        and "-Xmx" not in options
        and not any(
            name.startswith(("SPARK_", "HADOOP_", "YARN_")) and name not in _SET_BY_PYSPARK
            for name in environment
        )
        # Here are spark-env.sh, spark-defaults.conf and what else an installation sets.
        and not (SPARK / "conf").exists()
    )


def java_command(java_home: str, memory: str, options: str) -> list[str]:
    """The command line of the Java that Spark runs in. ``options`` as a shell reads them."""
    first = sorted((SPARK / "jars").glob("slf4j-api-*.jar"))
    # That of `spark-submit`: an archive of classes is good for this class path alone.
    class_path = (SPARK / "conf", *first, SPARK / "jars" / "*")
    return [
        str(Path(java_home, "bin", "java")),
        "-cp",
        os.pathsep.join(map(str, class_path)),
        f"-Xmx{memory}",
        *shlex.split(options),
        *MODULE_OPTIONS,
        _MAIN,
    ]


def launch(command: list[str], folder: str, output: int) -> JavaGateway:
    """Start Java; ``output`` is the descriptor that it writes to.

    ``folder`` is private. Raises PySparkException where it ends at once, OSError without Java.
    """
    told = Path(folder, "gateway")
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env=_environment(told),
        # Ctrl-C is for this process, which ends Java when it is done.
        preexec_fn=_ignore_interrupts,
    )
    while not told.exists():
        if process.poll() is not None:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(_LOOK_SECONDS)
    with told.open("rb") as written:
        port = read_int(written)  # type: ignore[no-untyped-call]
        secret = UTF8Deserializer().loads(written)  # type: ignore[no-untyped-call]
    told.unlink()
    gateway = _connected(port, secret)
    gateway.proc = process
    return gateway


def _environment(told: Path) -> dict[str, str]:
    """That of `spark-submit`, with what Spark would look up at length."""
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told),
        # Else Spark has Hadoop log in to learn the name, and asks the network for the host's.
        "SPARK_USER": os.environ.get("USER") or str(os.getuid()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connected(port: int, secret: str) -> JavaGateway:
    """PySpark's connection to a Java that runs: it looks for these variables."""
    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(given)
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in given:
            del os.environ[name]

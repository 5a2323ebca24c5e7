"""Starts Java for a Spark of this host directly, without the scripts and the first Java.

`spark-submit` is two shell scripts, a Java that computes the command line of the next one, and a
program that parses its arguments: this takes longer than Spark itself takes to start. This module
computes the same command, unless the installation or the task file has settings that only
`spark-submit` supports; then `spark-submit` is used (`goes_directly`). The command differs from
that of `spark-submit` in two points: it lacks the module ``jdk.incubator.vector``, which only
Spark's machine learning uses, and the setting of the database Derby. A test compares the two.
Source: Spark's ``AbstractCommandBuilder``, ``SparkSubmitCommandBuilder``, ``JavaModuleOptions``.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from replicator.pipeline.spark.java import SPARK, driver_memory, driver_options, find_java_home
from replicator.pipeline.spark.spark_folder import first_folder, make_folder
from replicator.pipeline.spark.worker_fork import WORKER_FORK

_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
"""The main class. It ends at the end of its input, and so with this process."""

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
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""The modules that Spark needs of a Java since 17, including options of later Java versions."""

_READ_BY_SPARK_ITSELF = (
    "spark.authenticate",
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
"""Prefixes of the settings that only the running Spark reads."""

_SET_BY_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""Variables that PySpark leaves in this process, which may start Spark again."""


@dataclass(frozen=True, slots=True)
class StartedJava:
    """A Java that is starting, and ends with this process.

    Attributes:
        folder: the folder of the session.
        output: the output of Java and of its Python workers.
        connection_info: the file into which Java writes its port.
    """

    process: subprocess.Popen[bytes]
    folder: str
    output: BinaryIO
    connection_info: Path


def goes_directly(master: str, conf: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether no setting requires `spark-submit`.

    ``conf``: the settings of the task file.
    """
    options = conf.get("spark.driver.extraJavaOptions", "")
    return (
        re.fullmatch(r"local(\[[^\]]*\])?", master) is not None
        and all(name.startswith(_READ_BY_SPARK_ITSELF) for name in conf)
        # `spark-submit` refuses these options with an explanation.
        and "-Xmx" not in options
        and not any(
            name.startswith(("SPARK_", "HADOOP_", "YARN_")) and name not in _SET_BY_PYSPARK
            for name in environment
        )
        # This folder has spark-env.sh, spark-defaults.conf and other settings of an installation.
        and not (SPARK / "conf").exists()
    )


def begin_java(master: str, conf: Mapping[str, str]) -> StartedJava | None:
    """Start Java before Spark's Python modules are loaded; None if `spark-submit` must start it.

    Raises JavaMissingError, OSError.
    """
    return start_java(conf) if goes_directly(master, conf, os.environ) else None


def java_command(java_home: str, memory: str, options: str) -> list[str]:
    """Return the command line of the Java that Spark runs in. ``options`` as a shell reads them."""
    first = sorted((SPARK / "jars").glob("slf4j-api-*.jar"))
    # In the order of `spark-submit`, since an archive of classes is valid for one class path only.
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


def start_java(conf: Mapping[str, str]) -> StartedJava:
    """Start the Java of a local Spark. ``conf`` as for `goes_directly`.

    Raises JavaMissingError, OSError.
    """
    java_home = find_java_home()
    folder = make_folder()
    share_modules()
    connection_info = Path(folder, "gateway")
    read, write = os.pipe()
    try:
        process = subprocess.Popen(
            java_command(java_home, driver_memory(conf), driver_options(java_home, conf, folder)),
            stdin=subprocess.PIPE,
            stdout=write,
            stderr=write,
            env=_environment(connection_info),
            # Ctrl-C signals this process, which ends Java when it is done.
            preexec_fn=_ignore_interrupts,
        )
    finally:
        os.close(write)
    # Registered before the folder is removed: without it, a Java that is still starting would not
    # end.
    atexit.register(process.kill)
    return StartedJava(process, folder, os.fdopen(read, "rb"), connection_info)


def share_modules() -> None:
    """Let workers on this machine find our modules in the same place as this process."""
    root = str(Path(__file__).resolve().parents[3])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, *paths]))


def _environment(connection_info: Path) -> dict[str, str]:
    """Return the environment of `spark-submit`, with values that Spark would take long to find."""
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_info),
        WORKER_FORK: first_folder(),
        # Otherwise Spark uses a Hadoop login to find the user name, and queries the network for the
        # host name.
        "SPARK_USER": os.environ.get("USER") or str(os.getuid()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }


def _ignore_interrupts() -> None:
    # A terminal signals all of its processes; the task ends Java when it has saved.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


_ENVIRONMENT_FIELD = 47
"""The index of the bounds in the file, counted from the field after the program's name."""


def hide_variables(names: Collection[str]) -> None:
    """Overwrite the values of these variables in the memory that /proc shows for this process.

    Linux shows the memory that had the environment at the start, even if the variables have changed
    since (proc(5): ``env_start`` and ``env_end`` in ``/proc/[pid]/stat``). A child process only
    gets the variables if they are passed to it. Does nothing if the system does not show the
    addresses.
    """
    begin, end = _environment_bounds()
    wanted = {name.encode() for name in names}
    place = begin
    for variable in ctypes.string_at(begin, end - begin).split(b"\0"):
        name, equals, value = variable.partition(b"=")
        if name in wanted:
            ctypes.memset(place + len(name) + len(equals), 0, len(value))
        place += len(variable) + 1


def _environment_bounds() -> tuple[int, int]:
    """Return the addresses of its beginning and end in memory; 0 and 0 if unknown."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return int(fields[_ENVIRONMENT_FIELD]), int(fields[_ENVIRONMENT_FIELD + 1])
    except (OSError, IndexError):
        return 0, 0

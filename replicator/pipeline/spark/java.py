"""The Java and the Spark of this host, and the options with which Java starts."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from replicator.cache_folder import cache_folder
from replicator.memory import MIB, default_java_heap

JAVA_VERSIONS = (25, 21, 17)
"""The Java versions that Spark 4.3 supports, the preferred one first: since 19, Java archives
Spark's classes itself (`replicator.pipeline.spark.java`). scripts/java_home.sh has the same
list."""

_JVM_FOLDERS = ("/usr/lib/jvm", "/opt", "/Library/Java/JavaVirtualMachines")
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


class JavaMissingError(Exception):
    """No Java that Spark supports was found; the message says what to do."""


def _spark() -> Path:
    # Find it without loading it, since Java must start first.
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent.resolve()


SPARK = _spark()
"""The folder of the installed Spark."""


def find_java_home() -> str:
    """Return JAVA_HOME if it is set, or else the folder of the newest supported Java.

    Raises JavaMissingError.
    """
    given = os.environ.get("JAVA_HOME")
    if given:
        return given
    installed: dict[int, str] = {}
    for folder in _java_folders():
        installed.setdefault(java_version(str(folder)), str(folder))
    for version in JAVA_VERSIONS:
        if version in installed:
            return installed[version]
    raise JavaMissingError(
        "Spark needs Java 17, 21 or 25, and none was found: install the package"
        " openjdk-21-jre-headless (apt-get install openjdk-21-jre-headless; -17- where there is no"
        " newer one), or set JAVA_HOME to the folder of one that is installed elsewhere"
    )


def check_java() -> None:
    """Check that Spark finds its Java. Raises JavaMissingError."""
    home = find_java_home()
    if not Path(home, "bin", "java").is_file():
        raise JavaMissingError(
            f"JAVA_HOME is {home}, where no bin/java is: set it to the folder of Java 17, "
            "21 or 25, or unset it to have an installed one found"
        )


def java_version(java_home: str) -> int:
    """Return the major version of the Java in a folder; 0 if unknown.

    It is read from the file ``release``. Source: JEP 223, and the file that each JDK since 7 has in
    its folder.
    """
    try:
        release = Path(java_home, "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    found = _VERSION.search(release)
    return int(found[1]) if found else 0


def _java_folders() -> Iterator[Path]:
    for parent in map(Path, _JVM_FOLDERS):
        if parent.is_dir():
            for folder in sorted(parent.iterdir()):
                for home in (folder, folder / "Contents" / "Home"):
                    if (home / "bin" / "java").exists():
                        yield home


JAVA_OPTIONS = "-Xms24m -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""Java only starts and watches Python processes, and moves few bytes between them. So its second
compiler costs more than it saves, especially at the start (docs/inside/performance.md). Its
counters for jstat are sampled twenty times a second, even if it is idle. By default it would begin
with a heap of a 64th of the machine's memory, and fill it before collecting any garbage: this
setting saves 60 MiB for an idle task."""

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
"""An option that chooses Java's garbage collector. The driver has little garbage, so only the cost
of a collector's start and idle time counts; the serial collector costs least."""

ARCHIVES_CLASSES = 19
"""The first Java version that writes its loaded classes into an archive when it ends, and maps them
from there at its next start: this halves the start time. Source: JDK-8261455, java(1)."""

_ARCHIVE_OPTION = re.compile(r"-Xshare:|-XX:[+-]?(\w*SharedArchive|ArchiveClasses|AOT|CDS)")
"""An option in a task file about such an archive."""

_ARCHIVE_NAME = "spark-classes-"
_UNUSED_SECONDS = 30 * 24 * 3600.0

_LOGGING = """
rootLogger.level = error
# Spark compares this level with the root's, and prints a message if they differ.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
# Only the first line of an exception: the caller of Spark gets the complete text.
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{1}
"""


def driver_memory(conf: Mapping[str, str]) -> str:
    """Return the maximum memory for objects of the driver's Java, in Java's notation."""
    return conf.get("spark.driver.memory", f"{default_java_heap() // MIB}m")


def driver_options(java_home: str, conf: Mapping[str, str], folder: str) -> str:
    """Return the options of the driver's Java, in shell syntax.

    ``folder``: the session's folder.
    """
    logging = Path(folder, "log4j2.properties")
    logging.write_text(_LOGGING)
    wanted = conf.get("spark.driver.extraJavaOptions", "")
    return (
        f"-Dlog4j2.configurationFile={logging.as_uri()} {JAVA_OPTIONS}"
        # Libraries that a JVM unpacks are removed with the folder, even if the JVM is killed.
        f" {shlex.quote(f'-Djava.io.tmpdir={folder}')}"
        # Java refuses two collector options.
        f" {'' if _COLLECTOR.search(wanted) else '-XX:+UseSerialGC'}"
        f" {'' if _ARCHIVE_OPTION.search(wanted) else class_archive_options(java_home)} {wanted}"
    )


def class_archive_options(java_home: str) -> str:
    """Return the options by which Java keeps an archive of Spark's classes; empty if it can't.

    An archive is made for one Java and exactly the files of one Spark, and is named after them:
    Java does not use an archive that does not fit, and does not replace it.
    """
    if java_version(java_home) < ARCHIVES_CLASSES:
        return ""
    try:
        archive = cache_folder() / f"{_ARCHIVE_NAME}{_spark_and_java(java_home)}.jsa"
        _remove_useless_archives(archive)
    except OSError:
        return ""
    # Since 17, Java moves an archive to a random address, and so writes to all of its pages: 35 MiB
    # more that no other process shares, and 120 MiB if Spark SQL ran when the archive was made.
    at_its_address = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
    # Otherwise Java would report each class that it leaves out.
    return (
        f"-XX:+AutoCreateSharedArchive {shlex.quote(f'-XX:SharedArchiveFile={archive}')}"
        f" {at_its_address}"
        " -Xlog:cds=off -Xlog:cds+dynamic=off"
    )


def _spark_and_java(java_home: str) -> str:
    """Return text that identifies this Java and the files of this Spark."""
    with os.scandir(SPARK / "jars") as jars:
        found = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars)
    # The same Java may be found under several names.
    java = os.fsencode(Path(java_home).resolve()), Path(java_home, "release").read_bytes()
    return hashlib.sha256(repr((java, os.fspath(SPARK), found)).encode()).hexdigest()[:16]


def _remove_useless_archives(wanted: Path) -> None:
    """Remove an incomplete archive, and archives (65 MiB each) unused for a month.

    An archive is incomplete if a Java was killed while it wrote it.
    """
    now = time.time()
    for archive in wanted.parent.glob(f"{_ARCHIVE_NAME}*.jsa"):
        if archive != wanted and archive.stat().st_mtime < now - _UNUSED_SECONDS:
            archive.unlink(missing_ok=True)
    if wanted.exists():
        with wanted.open("rb") as written:
            # Java writes the header last, and never uses or replaces a file without one.
            complete = any(written.read(4))
        if complete:
            os.utime(wanted)
        else:
            wanted.unlink(missing_ok=True)

"""What the Java of a Spark is told when it starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from replicator.memory import MIB, default_java_heap
from replicator.pipeline.class_archive import sharing

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""Java starts Python processes and watches them, and moves few bytes between them: what its second
compiler costs is never earned back, least of all at the start (docs/performance.md). Its counters
for jstat are sampled twenty times a second, also when nothing is to be done."""

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
"""An option that chooses how Java collects garbage. There is little of it in the driver's, so what
counts is what a collector takes to start, and when nothing is to be done: least is one thread."""

_LOGGING = """
rootLogger.level = error
# The level that Spark compares with the root's, to announce the difference on stderr.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
# Of an exception the first line: whoever called Spark gets the whole.
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{1}
"""


def driver_memory(conf: Mapping[str, str]) -> str:
    """The most that the driver's Java may take for objects, as Java reads it."""
    return conf.get("spark.driver.memory", f"{default_java_heap() // MIB}m")


def driver_options(java_home: str, conf: Mapping[str, str], folder: str) -> str:
    """The options of the driver's Java, as a shell reads them. ``folder``: that of the session."""
    logging = Path(folder, "log4j2.properties")
    logging.write_text(_LOGGING)
    wanted = conf.get("spark.driver.extraJavaOptions", "")
    return (
        f"-Dlog4j2.configurationFile={logging.as_uri()} {JAVA_OPTIONS}"
        # Libraries that a JVM unpacks for itself go with the folder, also when it is killed.
        f" {shlex.quote(f'-Djava.io.tmpdir={folder}')}"
        # Java refuses to be given two.
        f" {'' if _COLLECTOR.search(wanted) else '-XX:+UseSerialGC'}"
        f" {sharing(java_home)} {wanted}"
    )

"""Which Java a Spark of this host runs in, and where that Spark is."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

JAVA_VERSIONS = (25, 21, 17)
"""The Java versions that Spark 4.3 runs on, the preferred one first: since 19 one archives Spark's
classes by itself (`replicator.pipeline.java_options`). scripts/java_home.sh has the same."""

_JVM_FOLDERS = ("/usr/lib/jvm", "/opt", "/Library/Java/JavaVirtualMachines")
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


class JavaMissingError(Exception):
    """No Java that Spark runs on was found; says which package has one."""


def _spark() -> Path:
    # Where it is, without loading it: Java is to start first.
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent.resolve()


SPARK = _spark()
"""The folder of the installed Spark."""


def find_java_home() -> str:
    """JAVA_HOME if it is set, else the folder of the newest installed Java that Spark runs on.

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


def java_version(java_home: str) -> int:
    """The major version of the Java in a folder, 0 where its file ``release`` does not tell it.

    Source: JEP 223, and the file that each JDK since 7 has in its folder.
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

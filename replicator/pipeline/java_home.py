"""Which Java a Spark of this host runs in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

JAVA_VERSIONS = (17, 21)
"""The Java versions that Spark 4 runs on, the preferred one first."""

_JVM_FOLDERS = ("/usr/lib/jvm", "/opt", "/Library/Java/JavaVirtualMachines")


class JavaMissingError(Exception):
    """No Java that Spark runs on was found; says which package has one."""


def find_java_home() -> str:
    """JAVA_HOME if it is set, else the folder of an installed Java that Spark runs on.

    Raises JavaMissingError.
    """
    given = os.environ.get("JAVA_HOME")
    if given:
        return given
    for version in JAVA_VERSIONS:
        for folder in _java_folders():
            if re.search(rf"(^|\D){version}(\D|$)", folder.name):
                return str(folder)
    raise JavaMissingError(
        "Spark needs Java 17 or 21, and none was found: install the package"
        " openjdk-17-jre-headless (apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        " to the folder of one that is installed elsewhere"
    )


def _java_folders() -> Iterator[Path]:
    for parent in map(Path, _JVM_FOLDERS):
        if parent.is_dir():
            for folder in sorted(parent.iterdir()):
                for home in (folder, folder / "Contents" / "Home"):
                    if (home / "bin" / "java").exists():
                        yield home

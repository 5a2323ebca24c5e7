"""The classes that Spark loads, archived as Java has them in memory: half of what its start takes.

`replicator.pipeline.make_class_archive` makes the archive, once for each Java and Spark of a host.
Java uses it only if it is of this very Java and of these files of Spark, and else goes on without.
Source: JEP 350, "Dynamic CDS Archives".
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
from pathlib import Path

from replicator.cache_folder import cache_folder


def _spark() -> Path:
    # Where it is, without loading it: Java is to start first.
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent.resolve()


SPARK = _spark()
"""Where the classes are: an archive is of no use to a Spark at another place."""

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""It would tell of each class that it leaves out, and of an archive that does not fit."""


def archive_of(java_home: str) -> Path:
    """Where the archive for a Java is, or would be. Raises OSError without a folder for it."""
    release = Path(java_home, "release")
    told = release.read_bytes() if release.is_file() else b""
    # A Java may be known by several names.
    described = (os.fsencode(Path(java_home).resolve()), told, classes_of(SPARK).encode())
    key = hashlib.sha256(b"\0".join(described)).hexdigest()[:16]
    return cache_folder() / f"spark-classes-{key}.jsa"


def classes_of(spark: Path) -> str:
    """What the files of a Spark are known by: Java takes an archive for these very ones alone.

    An installation that is made anew has others, in another order. Empty where there are none.
    """
    try:
        with os.scandir(spark / "jars") as jars:
            found = [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
    except OSError:
        return ""
    return hashlib.sha256(repr((os.fspath(spark), found)).encode()).hexdigest()


def sharing(java_home: str) -> str:
    """The options that have Java use its archive; empty where there is none."""
    try:
        archive = archive_of(java_home)
    except OSError:
        return ""
    return option("SharedArchiveFile", archive) if archive.is_file() else ""


def option(name: str, archive: Path) -> str:
    """The options of Java that write or use an archive, by the name of that option."""
    return f"{shlex.quote(f'-XX:{name}={archive}')} {_QUIET}"

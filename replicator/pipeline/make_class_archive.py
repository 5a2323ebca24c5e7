"""Making the archive of Spark's classes: ``python -m replicator.pipeline.make_class_archive``."""

from __future__ import annotations

import os
from pathlib import Path

from replicator.pipeline.class_archive import SPARK, archive_of, classes_of, option
from replicator.pipeline.java_home import find_java_home
from replicator.pipeline.session import (
    JVM_PATIENCE,
    close_spark,
    ready,
    spark_context,
)

DUMP_SECONDS = 300.0
"""How long Java may take to write the archive, at its end."""

_OWNER = ".spark"
"""Ends the name of the file beside an archive that says which Spark it is of: where it is, and what
its files are known by."""


def make_archive() -> Path:
    """Start Spark once, and have Java write down what it has loaded, unless it has before.

    Raises what `replicator.pipeline.session.spark_context` raises, and OSError.
    """
    archive = archive_of(find_java_home())
    if archive.is_file():
        return archive
    _remove_orphans(archive.parent)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    try:
        _start_spark(option("ArchiveClassesAtExit", unfinished), patience=DUMP_SECONDS)
        # An archive that was cut off, as by a full disk, would end each Java that uses it.
        _start_spark(option("SharedArchiveFile", unfinished), patience=JVM_PATIENCE)
        archive.with_suffix(_OWNER).write_text(f"{SPARK}\n{classes_of(SPARK)}")
        unfinished.rename(archive)
    finally:
        unfinished.unlink(missing_ok=True)
    return archive


def _remove_orphans(folder: Path) -> None:
    """Remove archives of a Spark that is gone, or was installed anew: each takes 70 MB."""
    for owner in folder.glob(f"*{_OWNER}"):
        spark, _, classes = owner.read_text().partition("\n")
        if not classes or classes != classes_of(Path(spark)):
            owner.with_suffix(".jsa").unlink(missing_ok=True)
            owner.unlink()


def _start_spark(options: str, patience: float) -> None:
    conf = {"spark.driver.extraJavaOptions": options}
    close_spark(ready(spark_context("local[1]", conf, "archive")), patience)


if __name__ == "__main__":
    make_archive()

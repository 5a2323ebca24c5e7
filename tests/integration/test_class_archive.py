"""The archive of Spark's classes, with a real Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.pipeline import class_archive
from replicator.pipeline.class_archive import archive_of, classes_of, sharing
from replicator.pipeline.java_home import find_java_home

START_SPARK = """
from pathlib import Path
from pyspark import SparkContext
from replicator.pipeline.session import close_spark, spark_context
spark = spark_context("local[1]", {}, "test")
java = SparkContext._gateway.proc.pid
print("maps:", Path(f"/proc/{java}/maps").read_text())
close_spark(spark)
"""


def python(folder: Path, *arguments: str) -> str:
    """What a Python says that has its cache in a folder."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


@pytest.mark.slow
def test_java_uses_what_was_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ".jsa" not in python(tmp_path, "-c", START_SPARK).replace("classes.jsa", "")
    folder = tmp_path / "replicator"
    installed = tmp_path / "jars" / "spark.jar"
    installed.parent.mkdir()
    installed.touch()
    former = f"{tmp_path}\n{classes_of(tmp_path)}"
    os.utime(installed, (1, 1))
    now = f"{tmp_path}\n{classes_of(tmp_path)}"
    for name, spark in (("gone", "/no such place\n"), ("former", former), ("other", now)):
        (folder / f"{name}.spark").write_text(spark)
        (folder / f"{name}.jsa").touch()
    python(tmp_path, "-m", "replicator.pipeline.make_class_archive")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    archive = archive_of(find_java_home())
    assert {*folder.glob("*.jsa")} == {archive, folder / "other.jsa"}
    assert str(archive) in python(tmp_path, "-c", START_SPARK)


def test_without_an_archive_java_is_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with space"))
    assert sharing("/java") == ""
    archive = archive_of("/java")
    archive.touch()
    assert sharing("/java").startswith(f"'-XX:SharedArchiveFile={archive}' ")
    assert archive_of("/other java") != archive
    (tmp_path / "known as").symlink_to("/java")
    assert archive_of(str(tmp_path / "known as")) == archive


def test_an_installation_that_was_made_anew_needs_an_archive_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive, "SPARK", tmp_path)
    jar = tmp_path / "jars" / "spark-core.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"classes")
    archive = archive_of("/java")
    assert archive_of("/java") == archive
    os.utime(jar, (1, 1))
    assert archive_of("/java") != archive

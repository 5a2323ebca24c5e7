"""Which Java is chosen, and how it is told to keep an archive of Spark's classes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from replicator.pipeline.spark import java as java_home
from replicator.pipeline.spark import java as java_options
from replicator.pipeline.spark.java import (
    JavaMissingError,
    class_archive_options,
    driver_options,
    find_java_home,
    java_version,
)


def installed(parent: Path, name: str, version: str) -> str:
    """The folder of a Java of this version, as an installation has it."""
    home = parent / name
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text(f'IMPLEMENTOR="X 99"\nJAVA_VERSION="{version}"\n')
    return str(home)


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder with installations of Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java_home, "_JVM_FOLDERS", (str(tmp_path / "jvm"),))
    return tmp_path / "jvm"


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of an installed Spark; a folder of its own for what is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with space"))
    monkeypatch.setattr(java_options, "SPARK", tmp_path / "spark")
    folder = tmp_path / "spark" / "jars"
    folder.mkdir(parents=True)
    (folder / "spark-core.jar").write_bytes(b"classes")
    return folder


def archive_in(options: str) -> Path:
    """The file that these options name."""
    _, _, rest = options.partition("'-XX:SharedArchiveFile=")
    return Path(rest.partition("'")[0])


@pytest.mark.parametrize(
    ("told", "version"),
    [("25.0.3", 25), ("25", 25), ("26-ea", 26), ("17.0.15", 17), ("1.8.0_402", 8), ("", 0)],
)
def test_the_version_of_a_java_stands_in_its_folder(
    told: str, version: int, tmp_path: Path
) -> None:
    assert java_version(installed(tmp_path, "java-99", told)) == version


def test_a_folder_that_tells_no_version_has_none(tmp_path: Path) -> None:
    assert java_version(str(tmp_path)) == 0


def test_the_newest_java_that_spark_runs_on_is_chosen(parent: Path) -> None:
    with pytest.raises(JavaMissingError, match="openjdk-21-jre-headless"):
        find_java_home()
    installed(parent, "a-java-11", "11.0.2")
    with pytest.raises(JavaMissingError):
        find_java_home()
    seventeen = installed(parent, "java-17", "17.0.15")
    assert find_java_home() == seventeen
    installed(parent, "java-26", "26.0.1")
    assert find_java_home() == seventeen
    twenty_five = installed(parent, "b-jdk", "25.0.3")
    installed(parent, "z-21", "21.0.1")
    assert find_java_home() == twenty_five
    installed(parent, "other-25", "25.0.3")
    assert find_java_home() == twenty_five


def test_a_java_that_is_named_comes_first(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(parent, "java-25", "25.0.3")
    monkeypatch.setenv("JAVA_HOME", "/opt/my java")
    assert find_java_home() == "/opt/my java"


@pytest.mark.parametrize("version", ["17.0.15", "18.0.2", ""])
def test_a_java_that_archives_no_classes_by_itself_is_told_nothing_of_it(
    version: str, tmp_path: Path, jars: Path
) -> None:
    assert class_archive_options(installed(tmp_path, "java", version)) == ""


@pytest.mark.parametrize("version", ["19.0.2", "21.0.8", "25"])
def test_a_newer_one_keeps_an_archive(version: str, tmp_path: Path, jars: Path) -> None:
    options = class_archive_options(installed(tmp_path, "java", version))
    assert options.startswith("-XX:+AutoCreateSharedArchive ")
    assert archive_in(options).parent == tmp_path / "with space" / "replicator"


def test_an_archive_is_of_one_java_and_of_the_very_files_of_one_spark(
    tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = installed(tmp_path, "java", "25.0.3")
    first = class_archive_options(java)
    (tmp_path / "known as").symlink_to(java)
    assert class_archive_options(str(tmp_path / "known as")) == first
    # Java would leave an archive of others unused for ever.
    os.utime(jars / "spark-core.jar", (1, 1))
    installed_anew = class_archive_options(java)
    (jars / "more.jar").touch()
    with_more = class_archive_options(java)
    other_java = class_archive_options(installed(tmp_path, "other", "25.0.3"))
    Path(java, "release").write_text('JAVA_VERSION="25.0.4"\n')
    updated = class_archive_options(java)
    monkeypatch.setattr(java_options, "SPARK", tmp_path / "other spark")
    jars.parent.rename(tmp_path / "other spark")
    moved = class_archive_options(java)
    assert len({first, installed_anew, with_more, other_java, updated, moved}) == 6


@pytest.mark.parametrize("left", [b"", bytes(5000)])
def test_an_archive_that_was_cut_off_is_removed(left: bytes, tmp_path: Path, jars: Path) -> None:
    java = installed(tmp_path, "java", "25.0.3")
    archive = archive_in(class_archive_options(java))
    archive.write_bytes(left)
    assert archive_in(class_archive_options(java)) == archive
    assert not archive.exists()
    archive.write_bytes(b"\xa8\xab\x0b\xf0")
    assert archive_in(class_archive_options(java)) == archive
    assert archive.exists()


def test_archives_that_no_java_was_given_for_long_are_removed(tmp_path: Path, jars: Path) -> None:
    java = installed(tmp_path, "java", "25.0.3")
    used = archive_in(class_archive_options(java))
    lately, long_ago, of_others = (used.with_name(f"spark-classes-{i}.jsa") for i in range(3))
    of_others = used.with_name("something-else.jsa")
    month_ago = time.time() - java_options._UNUSED_SECONDS - 60
    for archive in (used, lately, long_ago, of_others):
        archive.write_bytes(b"archive")
        if archive is not lately:
            os.utime(archive, (month_ago, month_ago))
    class_archive_options(java)
    assert used.exists()
    assert used.stat().st_mtime > month_ago + 60
    assert [a.exists() for a in (lately, long_ago, of_others)] == [True, False, True]


@pytest.mark.parametrize(
    "own",
    [
        "-XX:SharedArchiveFile=/my.jsa",
        "-Xshare:off",
        "-XX:-AutoCreateSharedArchive",
        "-XX:AOTCache=/my.aot",
        "-ea -XX:ArchiveClassesAtExit=/my.jsa",
    ],
)
def test_a_task_file_may_decide_on_archives_itself(own: str, tmp_path: Path, jars: Path) -> None:
    java = installed(tmp_path, "java", "25.0.3")
    told = driver_options(java, {"spark.driver.extraJavaOptions": own}, str(tmp_path))
    assert "spark-classes-" not in told
    assert own in told
    told = driver_options(java, {"spark.driver.extraJavaOptions": "-ea"}, str(tmp_path))
    assert class_archive_options(java) in told
    assert told.endswith("-ea")

"""What a real Java makes of what it is told: its command line, and the archive of classes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from replicator.pipeline.session import _submitted
from replicator.pipeline.spark.direct_launch import java_command
from replicator.pipeline.spark.java import (
    ARCHIVES_CLASSES,
    SPARK,
    class_archive_options,
    driver_memory,
    driver_options,
    find_java_home,
    java_version,
)

LAUNCHER = "org.apache.spark.launcher.Main"
SUBMIT = "org.apache.spark.deploy.SparkSubmit"
GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"

SCALA = {"SPARK_SCALA_VERSION": "2.13"}
"""What the scripts of Spark find out for the launcher."""

LEFT_OUT = {"--add-modules=jdk.incubator.vector", "-Dderby.connection.requireAuthentication=false"}
"""Options of spark-submit that ours lacks: what only Spark's machine learning and Hive use."""


def command_of_spark_submit(java: str, arguments: str) -> list[str]:
    """The command line that `bin/spark-submit` runs for these arguments, as its own launcher has
    it."""
    words = subprocess.run(
        ["bash", "-c", f'printf "%s\\0" {arguments}'], capture_output=True, check=True
    ).stdout.decode()
    told = subprocess.run(
        [
            str(Path(java, "bin", "java")),
            "-cp",
            str(SPARK / "jars" / "*"),
            LAUNCHER,
            SUBMIT,
            *words.split("\0")[:-1],
        ],
        env={"PATH": os.environ["PATH"], "JAVA_HOME": java, "SPARK_HOME": str(SPARK), **SCALA},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # Its scripts read it so: a line that ends what the launcher may have printed, then the words.
    return told.partition("\0\n")[2].split("\0")[:-1]


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {
            "spark.driver.memory": "600m",
            "spark.driver.extraJavaOptions": "-Da='b c' -XX:+UseG1GC -Xss2m",
        },
    ],
)
def test_the_command_line_of_java_is_that_of_spark_submit(
    conf: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = find_java_home()
    options = driver_options(java, conf, str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "")
    _submitted({}, conf, options, str(tmp_path))
    submitted = command_of_spark_submit(java, os.environ["PYSPARK_SUBMIT_ARGS"])
    direct = java_command(java, driver_memory(conf), options)
    assert set(submitted) >= LEFT_OUT
    # What follows are the arguments of spark-submit itself, and the gateway has none.
    before_main = submitted[: submitted.index(SUBMIT)]
    assert [word for word in before_main if word not in LEFT_OUT] == direct[:-1]
    assert direct[-1] == GATEWAY


def launched(java: str, options: str, *more: str) -> str:
    """What a small program of Spark prints, in a Java with these options."""
    command = [*options.split(), *more, "-cp", str(SPARK / "jars" / "*"), LAUNCHER, SUBMIT]
    done = subprocess.run(
        [str(Path(java, "bin", "java")), *command, "pyspark-shell"],
        env={"JAVA_HOME": java, "SPARK_HOME": str(SPARK), **SCALA},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_java_archives_what_it_has_loaded_and_maps_it_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = find_java_home()
    if java_version(java) < ARCHIVES_CLASSES:
        pytest.skip(f"this Java is older than {ARCHIVES_CLASSES}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mapped = f"{LAUNCHER} source: shared objects file (top)"
    folder = tmp_path / "replicator"

    def start() -> bool:
        return mapped in launched(java, class_archive_options(java), "-Xlog:class+load")

    assert not start()
    [archive] = folder.iterdir()
    assert start()
    # As a Java leaves it that is killed while it writes it, which no later one would replace.
    archive.write_bytes(bytes(archive.stat().st_size))
    assert not start()
    assert start()
    assert [*folder.iterdir()] == [archive]

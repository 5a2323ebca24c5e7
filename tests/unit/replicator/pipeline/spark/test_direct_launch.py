"""When Spark's own scripts are left out, and what Java is told then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replicator.pipeline.spark import direct_launch
from replicator.pipeline.spark.direct_launch import goes_directly, java_command


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_a_spark_of_this_host_is_started_directly(master: str) -> None:
    conf = {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-verbose:gc",
        "spark.pyspark.python": "/usr/bin/python3",
        "spark.ui.enabled": "true",
    }
    assert goes_directly(master, conf, {"PATH": "/bin", "SPARK_BUFFER_SIZE": "65536"})


@pytest.mark.parametrize(
    "master", ["spark://h:7077", "yarn", "k8s://https://h", "local-cluster[1,1,512]"]
)
def test_one_elsewhere_is_not(master: str) -> None:
    assert not goes_directly(master, {}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.jars", "/opt/more.jar"),
        ("spark.jars.packages", "org:name:1"),
        ("spark.files", "/etc/hosts"),
        ("spark.archives", "/opt/python.tar.gz"),
        ("spark.driver.extraClassPath", "/opt/classes"),
        ("spark.driver.defaultJavaOptions", "-verbose"),
        ("spark.hadoop.fs.defaultFS", "hdfs://h"),
        ("spark.kerberos.principal", "me"),
        ("spark.submit.deployMode", "client"),
        ("spark.driver.extraJavaOptions", "-ea -Xmx3g"),
    ],
)
def test_what_spark_submit_alone_obeys_is_left_to_it(name: str, value: str) -> None:
    assert not goes_directly("local[*]", {name: value}, {})


@pytest.mark.parametrize(
    "name", ["SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "HADOOP_CONF_DIR"]
)
def test_so_are_its_variables(name: str) -> None:
    assert not goes_directly("local[*]", {}, {name: "/opt"})


def test_so_is_what_an_installation_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(direct_launch, "SPARK", tmp_path)
    assert goes_directly("local[*]", {}, {})
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-env.sh").touch()
    assert not goes_directly("local[*]", {}, {})


def test_java_gets_the_memory_and_the_options_of_the_task_file() -> None:
    command = java_command("/java", "3g", "-Da='b c' -Dd=e")
    assert command[:2] == [os.path.join("/java", "bin", "java"), "-cp"]
    assert command[3:6] == ["-Xmx3g", "-Da=b c", "-Dd=e"]
    assert not [option for option in command if "incubator" in option]

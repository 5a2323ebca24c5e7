"""The process that Spark forks its Python workers from, and where it takes its modules from."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pyspark
from pyspark import SparkContext

from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.worker_daemon import ending_quietly, without_packed
from replicator.pipeline.workers.worker_pool import release_slots

ARCHIVE = "/python/lib/pyspark.zip"


def test_workers_have_the_installed_modules_of_spark(spark: SparkContext) -> None:
    def places(_: None, __: int) -> list[bytes]:
        import pyspark.serializers

        return [os.fsencode(path) for path in (str(pyspark.serializers.__file__), *sys.path)]

    release_slots(spark)
    module, *paths = map(os.fsdecode, run_in_tasks(spark, 1, places, None))
    home = Path(pyspark.__file__).parent.resolve()
    assert Path(module).resolve() == home / "serializers.py"
    packed = (path for path in map(Path, paths) if path.suffix in (".zip", ".jar"))
    assert not [path for path in packed if path.resolve().is_relative_to(home)]


def test_a_worker_whose_connection_spark_has_closed_ends_without_a_traceback() -> None:
    def answers(connection: socket.socket, _: bool) -> int:
        return connection.send(b"the rest")

    worker, spark = socket.socketpair()
    with worker:
        assert ending_quietly(answers)(worker, True) == len("the rest")
        spark.close()
        assert ending_quietly(answers)(worker, True) == 1


def test_modules_are_left_packed_where_no_others_are_known_to_be_the_same(tmp_path: Path) -> None:
    home = tmp_path / "site-packages" / "pyspark"
    home.mkdir(parents=True)
    packed, others = [str(home) + ARCHIVE], [str(home.parent), "/ours"]
    # As with a Spark that was unpacked: its folder is no package.
    assert without_packed(packed + others, str(home)) == packed + others
    (home / "__init__.py").touch()
    assert without_packed(packed + others, str(home)) == others
    assert without_packed([*packed, "/ours"], str(home)) == [*packed, "/ours"]
    assert without_packed(packed + others, "") == packed + others
    (tmp_path / "other name").symlink_to(tmp_path)
    spark = str(tmp_path / "other name" / "site-packages" / "pyspark")
    assert without_packed([spark + ARCHIVE, *others], spark) == others

"""A batch of which some buckets are on the target, and others were refused."""

from __future__ import annotations

from pathlib import Path

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards

NAME = "partly"


def test_the_rows_of_a_refused_bucket_come_when_the_target_is_resumed(
    mariadb_source: DatabaseServer, target_server: DatabaseServer, tmp_path: Path
) -> None:
    shards = Shards([mariadb_source], target_server, NAME)
    task = LongTask(shards, tmp_path)
    task.values["writer"] = {"batch-bytes": "16MiB"}
    mariadb_source.execute(
        f"INSERT INTO {NAME}.t1 VALUES (1, 'x', 1)", f"INSERT INTO {NAME}.bag VALUES (1, 'x')"
    )
    task.assert_equal()
    target_server.execute(f"ALTER TABLE {NAME}.t MODIFY name VARCHAR(1500)")
    mariadb_source.execute(
        "INSERT INTO t2 SELECT 1000 + seq, REPEAT('x', IF(seq = 350, 1501, 1500)), -seq"
        " FROM seq_1_to_800",
        database=NAME,
    )
    assert task.fault().event == "rows.refused"
    ((written,),) = target_server.execute(f"SELECT COUNT(*) FROM {NAME}.t WHERE id > 1000")
    assert 0 < written < 800
    # Meanwhile, the rows of another target go on, and all of the source is read.
    mariadb_source.execute(f"INSERT INTO {NAME}.bag VALUES (2, 'y')")
    bag = f"SELECT a FROM {NAME}.bag ORDER BY a"
    task.task.until(lambda: target_server.execute(bag) == ((1,), (2,)), "the other target's rows")
    target_server.execute(f"ALTER TABLE {NAME}.t MODIFY name VARCHAR(2000)")
    task.resume()
    task.assert_equal()
    task.end()

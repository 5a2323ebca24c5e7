"""A unique key that no shard has comes to a target while the task writes to it."""

from __future__ import annotations

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.long_task import LongTask

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize(
        "one_server", ["mariadb_target", "mysql_source", "tidb_target"], indirect=True
    ),
]


@pytest.fixture
def source(one_server: LongTask) -> DatabaseServer:
    (server,) = one_server.shards.servers
    return server


@pytest.fixture
def task(one_server: LongTask, source: DatabaseServer) -> LongTask:
    source.execute(
        *(f"INSERT INTO t1 SELECT {n}, 'row', {n}" for n in range(1, 6)),
        "INSERT INTO bag VALUES (1, 'x')",
        database=one_server.name,
    )
    return one_server


def collide(task: LongTask, shards: DatabaseServer) -> None:
    """Rows of another shard have values that a key added by hand must be unique in."""
    target = task.shards.target
    target.execute(f"ALTER TABLE {task.name}.t ADD UNIQUE by_hand (n)")
    shards.execute(
        f"INSERT INTO {task.name}.t2 VALUES (101, 'other', 1)",
        f"UPDATE {task.name}.t1 SET n = 2 WHERE id = 3",
    )
    fault = task.fault()
    assert fault.event == "rows.duplicate"
    assert "by_hand" in fault.message
    assert f"target {task.name}.t" in fault.where
    found = target.execute(f"SELECT id FROM {task.name}.t WHERE id < 100 ORDER BY id")
    assert [row[0] for row in found] == [1, 2, 3, 4, 5]
    target.execute(f"ALTER TABLE {task.name}.t DROP KEY by_hand")
    task.resume()
    task.until_equal()


def test_in_safe_mode(task: LongTask, source: DatabaseServer) -> None:
    task.copy_first()
    task.values["syncers"]["sync"]["safe-mode"] = True
    task.until_equal()
    source.execute(f"UPDATE {task.name}.t1 SET n = 50 WHERE id = 5")
    task.until_equal()
    collide(task, source)


def test_while_another_target_is_copied_again(task: LongTask, source: DatabaseServer) -> None:
    task.copy_first()
    task.until_equal()
    source.execute(f"UPDATE {task.name}.t1 SET n = 50 WHERE id = 5")
    task.until_equal()
    with source.connect(database=task.name) as connection:
        connection.cursor().execute("LOCK TABLES bag WRITE")
        answer = task.task.cli("recopy", task.name, "--target", f"{task.name}.bag", "--truncate")
        assert answer.returncode == 0, answer.stderr
        source.execute(f"UPDATE {task.name}.t1 SET n = 51 WHERE id = 5")

        def applied() -> bool:
            rows = task.shards.target.execute(f"SELECT n FROM {task.name}.t WHERE id = 5")
            return tuple(rows) == ((51,),)

        task.task.until(applied, "the rows of the other target")
        task.shards.target.execute(f"ALTER TABLE {task.name}.t ADD UNIQUE by_hand (n)")
        source.execute(f"INSERT INTO {task.name}.t2 VALUES (101, 'other', 1)")
        assert task.fault().event == "rows.duplicate"
        connection.cursor().execute("UNLOCK TABLES")
    found = task.shards.target.execute(f"SELECT id FROM {task.name}.t WHERE id < 100 ORDER BY id")
    assert [row[0] for row in found] == [1, 2, 3, 4, 5]
    task.shards.target.execute(f"ALTER TABLE {task.name}.t DROP KEY by_hand")
    task.resume()
    task.until_equal()


def test_while_only_some_buckets_have_the_last_rows(task: LongTask, source: DatabaseServer) -> None:
    task.values["writer"] = {"batch-bytes": "16MiB"}
    target = task.shards.target
    target.execute(f"ALTER TABLE {task.name}.t MODIFY name VARCHAR(1600)")
    task.until_equal()
    source.execute(f"UPDATE {task.name}.t1 SET n = 50 WHERE id = 5")
    task.assert_equal()
    source.execute(
        "INSERT INTO t2 SELECT 1000 + seq, REPEAT('x', IF(seq = 350, 1700, 1500)), -seq"
        " FROM seq_1_to_800",
        database=task.name,
    )
    assert task.fault().event == "rows.refused"
    ((written,),) = target.execute(f"SELECT COUNT(*) FROM {task.name}.t WHERE id > 1000")
    assert 0 < written < 800
    target.execute(f"ALTER TABLE {task.name}.t MODIFY name VARCHAR(2000), ADD UNIQUE by_hand (n)")
    task.resume()
    fault = task.fault()
    assert (fault.event, "a unique key was added" in fault.message) == ("rows.no-plan", True)
    target.execute(f"ALTER TABLE {task.name}.t DROP KEY by_hand")
    task.resume()
    task.until_equal()


def test_no_bucket_is_written_with_a_key_of_which_the_task_does_not_know(
    task: LongTask, source: DatabaseServer
) -> None:
    task.values["writer"] = {"batch-bytes": "16MiB"}
    task.until_equal()
    source.execute(f"UPDATE {task.name}.t1 SET n = 50 WHERE id = 5")
    task.assert_equal()
    target = task.shards.target
    target.execute(f"ALTER TABLE {task.name}.t ADD UNIQUE by_hand (n)")
    source.execute(
        f"INSERT INTO {task.name}.t2 SELECT 1000 + seq, REPEAT('x', 1500), IF(seq = 350, 1, -seq)"
        " FROM seq_1_to_800",
        database=task.name,
    )
    assert task.fault().event == "rows.duplicate"
    assert target.execute(f"SELECT COUNT(*) FROM {task.name}.t WHERE id > 1000") == ((0,),)
    target.execute(f"ALTER TABLE {task.name}.t DROP KEY by_hand")
    task.resume()
    task.until_equal()


def test_a_key_that_the_shards_add_is_no_fault(task: LongTask, source: DatabaseServer) -> None:
    task.until_equal()
    source.execute(f"UPDATE {task.name}.t1 SET n = 50 WHERE id = 5")
    task.assert_equal()
    buckets = (
        f"SELECT DISTINCT bucket FROM {task.name}_meta.{task.name}_watermark"
        " WHERE target_table = 't' ORDER BY bucket"
    )
    target = task.shards.target
    assert len(target.execute(buckets)) > 2
    source.execute(
        *(f"ALTER TABLE {task.name}.{shard} ADD UNIQUE by_all (n)" for shard in ("t1", "t2")),
        f"INSERT INTO {task.name}.t2 VALUES (101, 'other', 101), (102, 'other', 102)",
    )
    task.until_equal()
    # The last checkpoint is older than the last rows.
    task.end()
    source.execute(f"INSERT INTO {task.name}.t1 VALUES (6, 'row', 60)")
    task.assert_equal()
    assert target.execute(buckets) == ((-1,), (0,))

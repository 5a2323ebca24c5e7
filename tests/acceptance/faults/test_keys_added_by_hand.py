"""A unique key that no shard has comes to a target while the task writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards

pytestmark = pytest.mark.slow
NAME = "addedkey"


@pytest.fixture(scope="module")
def source() -> Iterator[DatabaseServer]:
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture(params=["mariadb_target", "mysql_source", "tidb_target"])
def task(
    request: pytest.FixtureRequest, source: DatabaseServer, tmp_path: Path
) -> Iterator[LongTask]:
    target: DatabaseServer = request.getfixturevalue(request.param)
    found = LongTask(Shards([source], target, NAME), tmp_path)
    source.execute(
        *(f"INSERT INTO {NAME}.t1 SELECT {n}, 'row', {n}" for n in range(1, 6)),
        f"INSERT INTO {NAME}.bag VALUES (1, 'x')",
    )
    yield found
    found.end()
    source.execute(f"DROP DATABASE {NAME}")
    target.execute(
        f"DROP DATABASE IF EXISTS {NAME}",
        *(
            f"DROP DATABASE `{schema}`"
            for (schema,) in target.execute("SHOW DATABASES")
            if schema == "dm_meta"
        ),
    )


def copying(task: LongTask) -> None:
    """Let the task copy first; for some time after that, it is in safe mode by itself."""
    task.values["task-mode"] = "all"
    for instance in task.values["mysql-instances"]:
        del instance["meta"]


def until_equal(task: LongTask) -> None:
    def equal() -> bool:
        # The target may not be there yet.
        with suppress(AssertionError, pymysql.err.ProgrammingError, pymysql.err.OperationalError):
            task.shards.assert_equal()
            return True
        return False

    task.task.until(equal, "equal")


def collide(task: LongTask, shards: DatabaseServer) -> None:
    """Rows of another shard have values that a key added by hand must be unique in."""
    target = task.shards.target
    target.execute(f"ALTER TABLE {NAME}.t ADD UNIQUE by_hand (n)")
    shards.execute(
        f"INSERT INTO {NAME}.t2 VALUES (101, 'other', 1)",
        f"UPDATE {NAME}.t1 SET n = 2 WHERE id = 3",
    )
    fault = task.fault()
    assert fault.event == "rows.duplicate"
    assert "by_hand" in fault.message
    assert f"target {NAME}.t" in fault.where
    found = target.execute(f"SELECT id FROM {NAME}.t WHERE id < 100 ORDER BY id")
    assert [row[0] for row in found] == [1, 2, 3, 4, 5]
    target.execute(f"ALTER TABLE {NAME}.t DROP KEY by_hand")
    task.resume()
    until_equal(task)


def test_in_safe_mode(task: LongTask, source: DatabaseServer) -> None:
    copying(task)
    task.values["syncers"]["sync"]["safe-mode"] = True
    until_equal(task)
    source.execute(f"UPDATE {NAME}.t1 SET n = 50 WHERE id = 5")
    until_equal(task)
    collide(task, source)


def test_while_another_target_is_copied_again(task: LongTask, source: DatabaseServer) -> None:
    copying(task)
    until_equal(task)
    source.execute(f"UPDATE {NAME}.t1 SET n = 50 WHERE id = 5")
    until_equal(task)
    with source.connect(database=NAME) as connection:
        connection.cursor().execute("LOCK TABLES bag WRITE")
        answer = task.task.cli("recopy", NAME, "--target", f"{NAME}.bag", "--truncate")
        assert answer.returncode == 0, answer.stderr
        source.execute(f"UPDATE {NAME}.t1 SET n = 51 WHERE id = 5")

        def applied() -> bool:
            rows = task.shards.target.execute(f"SELECT n FROM {NAME}.t WHERE id = 5")
            return tuple(rows) == ((51,),)

        task.task.until(applied, "the rows of the other target")
        task.shards.target.execute(f"ALTER TABLE {NAME}.t ADD UNIQUE by_hand (n)")
        source.execute(f"INSERT INTO {NAME}.t2 VALUES (101, 'other', 1)")
        assert task.fault().event == "rows.duplicate"
        connection.cursor().execute("UNLOCK TABLES")
    found = task.shards.target.execute(f"SELECT id FROM {NAME}.t WHERE id < 100 ORDER BY id")
    assert [row[0] for row in found] == [1, 2, 3, 4, 5]
    task.shards.target.execute(f"ALTER TABLE {NAME}.t DROP KEY by_hand")
    task.resume()
    until_equal(task)


def test_while_only_some_buckets_have_the_last_rows(task: LongTask, source: DatabaseServer) -> None:
    task.values["writer"] = {"batch-bytes": "16MiB"}
    target = task.shards.target
    target.execute(f"ALTER TABLE {NAME}.t MODIFY name VARCHAR(1600)")
    until_equal(task)
    source.execute(f"UPDATE {NAME}.t1 SET n = 50 WHERE id = 5")
    task.assert_equal()
    source.execute(
        f"INSERT INTO {NAME}.t2 SELECT 1000 + seq, REPEAT('x', IF(seq = 350, 1700, 1500)), -seq"
        " FROM seq_1_to_800",
        database=NAME,
    )
    assert task.fault().event == "rows.refused"
    ((written,),) = target.execute(f"SELECT COUNT(*) FROM {NAME}.t WHERE id > 1000")
    assert 0 < written < 800
    target.execute(f"ALTER TABLE {NAME}.t MODIFY name VARCHAR(2000), ADD UNIQUE by_hand (n)")
    task.resume()
    fault = task.fault()
    assert (fault.event, "a unique key was added" in fault.message) == ("rows.no-plan", True)
    target.execute(f"ALTER TABLE {NAME}.t DROP KEY by_hand")
    task.resume()
    until_equal(task)


def test_no_bucket_is_written_with_a_key_of_which_the_task_does_not_know(
    task: LongTask, source: DatabaseServer
) -> None:
    task.values["writer"] = {"batch-bytes": "16MiB"}
    until_equal(task)
    source.execute(f"UPDATE {NAME}.t1 SET n = 50 WHERE id = 5")
    task.assert_equal()
    target = task.shards.target
    target.execute(f"ALTER TABLE {NAME}.t ADD UNIQUE by_hand (n)")
    source.execute(
        f"INSERT INTO {NAME}.t2 SELECT 1000 + seq, REPEAT('x', 1500), IF(seq = 350, 1, -seq)"
        " FROM seq_1_to_800",
        database=NAME,
    )
    assert task.fault().event == "rows.duplicate"
    assert target.execute(f"SELECT COUNT(*) FROM {NAME}.t WHERE id > 1000") == ((0,),)
    target.execute(f"ALTER TABLE {NAME}.t DROP KEY by_hand")
    task.resume()
    until_equal(task)


def test_a_key_that_the_shards_add_is_no_fault(task: LongTask, source: DatabaseServer) -> None:
    until_equal(task)
    source.execute(f"UPDATE {NAME}.t1 SET n = 50 WHERE id = 5")
    task.assert_equal()
    buckets = (
        f"SELECT DISTINCT bucket FROM {NAME}_meta.{NAME}_watermark WHERE target_table = 't'"
        " ORDER BY bucket"
    )
    target = task.shards.target
    assert len(target.execute(buckets)) > 2
    source.execute(
        *(f"ALTER TABLE {NAME}.{shard} ADD UNIQUE by_all (n)" for shard in ("t1", "t2")),
        f"INSERT INTO {NAME}.t2 VALUES (101, 'other', 101), (102, 'other', 102)",
    )
    until_equal(task)
    # The last checkpoint is older than the last rows.
    task.end()
    source.execute(f"INSERT INTO {NAME}.t1 VALUES (6, 'row', 60)")
    task.assert_equal()
    assert target.execute(buckets) == ((-1,), (0,))

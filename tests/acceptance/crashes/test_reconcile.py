"""A target whose rows are reconciled: killed with SIGKILL at every step, while rows change."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from tests.acceptance.crashes.test_crashes import stop
from tests.acceptance.crashes.test_moved_rows import is_equal
from tests.support.tasks.processes import TaskProcess, killed_at, task_process
from tests.support.tasks.shards import KEYED, Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import write_task

STEPS = (
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.RECONCILING_BEGUN,
    Failpoint.CORRECTION_OPEN,
    Failpoint.ROWS_CORRECTED,
    Failpoint.RECONCILING_SAVED,
    Failpoint.RECONCILING_ENDED,
)

ANSWERED = (
    Failpoint.DDL_RECORDED,
    Failpoint.DDL_EXECUTED,
    Failpoint.DDL_FINISHED,
    Failpoint.ANSWER_EXECUTED,
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_killed_while_a_target_is_reconciled(
    shards: Shards, database_name: str, tmp_path: Path, mode: str
) -> None:
    """Each kill is followed by another statement whose values only the shards know."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": mode}))
    for number, server in enumerate(shards.servers):
        for shard in (1, 2):
            first = 10_000 * (2 * number + shard)
            server.execute(
                f"INSERT INTO t{shard} SELECT seq, 'row', 0 FROM seq_{first}_to_{first + 700}",
                database=database_name,
            )
    for step, point in enumerate(STEPS):
        with killed_at(point, path, tmp_path) as running:
            if not step:
                running.until_applied(database_name, shards.sources)
            alter(shards, step)
        change(shards, step)
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(lambda: is_equal(shards), "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")
        shards.assert_equal()
        stop(running, database_name)


@pytest.mark.slow
def test_killed_while_a_late_shard_is_reconciled(
    shards: Shards, database_name: str, tmp_path: Path
) -> None:
    """Each kill is followed by another shard that makes the changes after its target has them."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": "pessimistic"}))
    late: list[str] = []

    def is_merged() -> bool:
        db = shards.database
        tables = [(server, f"{db}.t{n}") for server in shards.servers for n in (1, 2)]
        tables += [(shards.servers[0], f"{db}.{name}") for name in late]
        return rows_of(shards.target, f"{db}.t") == union_of(tables)

    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        alter(shards, 0)
        alter(shards, 1)
        running.until_applied(database_name, shards.sources)
        running.until(is_merged, "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")
        stop(running, database_name)
    for step, point in enumerate(STEPS[2:]):
        with killed_at(point, path, tmp_path):
            late.append(f"t{3 + step}")
            first = 100_000 * (step + 1)
            shards.servers[0].execute(
                f"CREATE TABLE {late[-1]} {KEYED}",
                f"INSERT INTO {late[-1]} SELECT seq, 'row', 0 FROM seq_{first}_to_{first + 700}",
                f"SET timestamp = {1_600_000_000 + step}",
                f"ALTER TABLE {late[-1]} ADD c0 DATETIME(6) DEFAULT now(6)",
                f"UPDATE {late[-1]} SET n = n + 1 WHERE id % 7 = {step}",
                f"ALTER TABLE {late[-1]} ADD c1 DATETIME(6) DEFAULT now(6)",
                f"UPDATE {late[-1]} SET c1 = NULL WHERE id % 11 = {step}",
                f"DELETE FROM {late[-1]} WHERE id % 100 = {step}",
                database=shards.database,
            )
        change(shards, 0)
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(is_merged, "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")


@pytest.mark.slow
@pytest.mark.parametrize("point", [Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED])
def test_killed_while_a_column_gets_a_name_that_another_shard_has(
    shards: Shards, database_name: str, tmp_path: Path, point: Failpoint
) -> None:
    """A row with NULL by the former name is a shard's own, although the target shows a default."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": "optimistic"}))
    tables = [(server, f"{shards.database}.t{n}") for server in shards.servers for n in (1, 2)]
    created = shards.servers[0], f"{shards.database}.t3"

    def is_merged() -> bool:
        return rows_of(shards.target, f"{shards.database}.t") == union_of([*tables, created])

    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        for number, (server, table) in enumerate(tables):
            server.execute(f"INSERT INTO {table} VALUES ({number}, '', NULL), (1{number}, '', 7)")
        server, table = created
        server.execute(
            f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name VARCHAR(2000),"
            " d INT NOT NULL DEFAULT 5)",
            f"INSERT INTO {table} VALUES (20, '', 5), (21, '', 6)",
        )
        running.until_applied(database_name, shards.sources)
        with running.killed_at(point):
            for server, table in tables:
                server.execute(f"ALTER TABLE {table} CHANGE n d INT")
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(is_merged, "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["optimistic", ""])
def test_killed_while_a_statement_with_other_values_is_executed(
    shards: Shards, database_name: str, tmp_path: Path, mode: str
) -> None:
    """Nothing else queues the target: a lost entry would leave the target's values."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": mode}))
    columns = "id"
    for step, point in enumerate(ANSWERED):
        with task_process(path, tmp_path) as running:
            running.until_applied(database_name, shards.sources)
            running.until(partial(has_rows_of_second, shards, columns), "equal rows")
            with running.killed_at(point, time=2):
                alter_with_other_values(shards, step)
        columns = f"id, c{step}, d{step}"
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(partial(has_rows_of_second, shards, columns), "equal rows")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
@pytest.mark.parametrize(
    ("point", "time"), [(Failpoint.DDL_RECORDED, 2), (Failpoint.DDL_EXECUTED, 1)]
)
def test_killed_while_the_values_of_keys_are_cut(
    shards: Shards, database_name: str, tmp_path: Path, mode: str, point: Failpoint, time: int
) -> None:
    """The target refuses the statement once, and then has other keys than its shards."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": mode}))
    db = shards.database
    tables = [(server, f"{db}.k") for server in shards.servers]

    def is_merged() -> bool:
        return rows_of(shards.target, f"{db}.k") == union_of(tables)

    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        for number, (server, table) in enumerate(tables, start=1):
            rows = f"seq_{number}00_to_{number}90"
            server.execute(
                f"CREATE TABLE {table} (id VARCHAR(20) PRIMARY KEY, v INT)",
                f"INSERT INTO {table} SELECT CONCAT(seq, ' row'), 0 FROM {rows}",
                database=db,
            )
        running.until_applied(database_name, shards.sources)
        with running.killed_at(point, time=time):
            for server, table in tables:
                server.execute("SET sql_mode = ''", f"ALTER TABLE {table} MODIFY id VARCHAR(3)")
    # Only a saved entry of the queue gives these rows their keys back.
    shards.target.execute(f"UPDATE {db}.k SET id = CONCAT(CHAR(96 + LEFT(id, 1)), SUBSTR(id, 2))")
    for server, table in tables:
        server.execute(
            f"UPDATE {table} SET v = 1 WHERE id LIKE '%1'",
            f"DELETE FROM {table} WHERE id LIKE '%2'",
            f"UPDATE {table} SET id = CONCAT('9', LEFT(id, 2)) WHERE id LIKE '%3'",
        )
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(is_merged, "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")


@pytest.mark.slow
def test_killed_after_rows_are_removed_for_a_unique_key(
    shards: Shards, database_name: str, tmp_path: Path
) -> None:
    """One row of each value stays, and the pass over the numbers gives it those of its shard."""
    path = write_task(tmp_path, shards.task(**{"shard-mode": "pessimistic"}))
    db = shards.database
    tables = [(server, f"{db}.k") for server in shards.servers]

    def is_merged() -> bool:
        return rows_of(shards.target, f"{db}.k") == union_of(tables)

    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        for number, (server, table) in enumerate(tables):
            server.execute(
                f"CREATE TABLE {table} (m INT, g INT, v INT, PRIMARY KEY (m, g))",
                f"INSERT INTO {table} SELECT seq, {number}, 0 FROM seq_1_to_90",
                database=db,
            )
        running.until_applied(database_name, shards.sources)
        stop(running, database_name)
    for number, (server, table) in enumerate(tables, start=1):
        server.execute(
            f"SET auto_increment_increment = 2, auto_increment_offset = {number}",
            f"ALTER TABLE {table} DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY",
            f"UPDATE {table} SET v = 1 WHERE m > 5",
            f"DELETE FROM {table} WHERE m = 19",
            f"ALTER TABLE {table} ADD UNIQUE KEY u (m, g)",
            f"UPDATE {table} SET v = 2 WHERE m > 15",
        )
    with killed_at(Failpoint.DOUBLES_REMOVED, path, tmp_path):
        pass
    with task_process(path, tmp_path) as running:
        running.until_applied(database_name, shards.sources)
        running.until(is_merged, "equal rows")
        running.until(lambda: is_done(running, database_name), "an empty queue")
        assert "UNIQUE KEY `u`" in str(shards.target.execute(f"SHOW CREATE TABLE {db}.k"))
        stop(running, database_name)


def alter(shards: Shards, step: int) -> None:
    """Have each shard give its rows another moment, beside changes of rows."""
    for number, server in enumerate(shards.servers):
        for shard in (1, 2):
            server.execute(
                f"UPDATE t{shard} SET n = n + 1 WHERE id % 7 = {step}",
                f"SET timestamp = {1_700_000_000 + 10 * step + 2 * number + shard}",
                f"ALTER TABLE t{shard} ADD c{step} DATETIME(6) DEFAULT now(6)",
                f"UPDATE t{shard} SET c{step} = '2001-02-03' WHERE id % 11 = {step}",
                f"DELETE FROM t{shard} WHERE id % 100 = {step}",
                database=shards.database,
            )


def alter_with_other_values(shards: Shards, step: int) -> None:
    """Have a source's shards add a column with different defaults."""
    rows, now = f"seq_{9 * step + 1}_to_{9 * step + 9}", "DATETIME(6) DEFAULT now(6)"
    shards.servers[0].execute(
        f"INSERT INTO t2 (id, n) SELECT seq, 0 FROM {rows}",
        f"ALTER TABLE t1 ADD c{step} INT DEFAULT 1",
        "SET timestamp = 1700000000",
        f"ALTER TABLE t2 ADD c{step} INT DEFAULT 2, ADD d{step} {now}",
        "UPDATE t2 SET n = n + 1",
        database=shards.database,
    )


def change(shards: Shards, step: int) -> None:
    """Change rows while no task runs."""
    for server in shards.servers:
        server.execute(
            f"UPDATE t1 SET c{step} = NULL WHERE id % 13 = {step}",
            f"UPDATE t2 SET id = id + 5000 WHERE id % 200 = {50 + step}",
            database=shards.database,
        )


def has_rows_of_second(shards: Shards, columns: str) -> bool:
    """Whether the target has the rows of a source's second shard."""
    db = shards.database
    own = rows_of(shards.servers[0], f"{db}.t2", columns)
    return own <= rows_of(shards.target, f"{db}.t", columns)


def is_done(running: TaskProcess, task: str) -> bool:
    status = running.status(task)
    return status is not None and bool(status.sources) and not status.reconciling

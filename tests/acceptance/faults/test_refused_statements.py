"""Statements that another kind of target refuses: the printed remedies, executed by command."""

from __future__ import annotations

import re
import shlex

import pytest

from replicator.status import Fault
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.tables import rows_of, union_of

pytestmark = pytest.mark.slow

CASES = [
    # A row of a dropped shard does not fit.
    ("mysql_target", "MODIFY name JSON, ADD m INT DEFAULT 4", "MODIFY name LONGTEXT, ADD m INT"),
    ("tidb_target", "MODIFY n TINYINT", ""),
    # The target's server does not have such a type, column or key.
    ("mysql_target", "ADD u UUID", "ADD u CHAR(36)"),
    ("mysql_target", "MODIFY name TEXT, ADD UNIQUE (name)", "MODIFY name TEXT"),
    ("tidb_target", "MODIFY name TEXT CHARACTER SET latin1", "MODIFY name MEDIUMTEXT"),
    ("tidb_target", "ADD g INT UNSIGNED AS (n + 3000000000) STORED", "ADD g BIGINT"),
    ("tidb_target", "ADD g INT AS (n + 1) STORED, ADD m INT DEFAULT 4", "ADD g INT, ADD m INT"),
]
"""A target, a change of all shards, and what the operator gives the target instead; nothing: a
skip."""


def fault_after(task: LongTask) -> Fault | None:
    """The next fault, or None if the target gets the last rows of both shards."""
    found: list[Fault] = []
    last = f"SELECT COUNT(*) FROM {task.name}.t WHERE id = 3 OR (id = 101 AND n = 9)"

    def decided() -> bool:
        status = task.task.status(task.name)
        if status is not None:
            faults = [status.error, *(part.error for part in status.blocked)]
            found.extend(fault for fault in faults if fault and fault.event != "task.restart")
        return bool(found) or task.shards.target.execute(last) == ((2,),)

    task.task.until(decided, "the last rows, or a fault")
    return found[0] if found else None


def end_stop(task: LongTask, fault: Fault) -> None:
    """Execute the remedy that reads the structure of a shard from its source."""
    assert fault.event == "rows.structure-unknown"
    [command] = {
        command
        for way in fault.remedies
        for command in re.findall("`replicator (schema set [^`]*--from-source[^`]*)`", way)
    }
    answer = task.task.cli(*shlex.split(command))
    assert answer.returncode == 0, answer.stderr
    task.resume()


@pytest.mark.remedy("ddl.refused", "skip", "replace")
@pytest.mark.parametrize(("one_server", "change", "instead"), CASES, indirect=["one_server"])
def test_the_target_goes_on_without_what_it_refuses(
    one_server: LongTask, change: str, instead: str
) -> None:
    task, target = one_server, one_server.shards.target
    (source,) = task.shards.servers
    task.values["shard-mode"] = "pessimistic"
    task.until_equal()
    source.execute(
        "CREATE TABLE t3 LIKE t1",
        "INSERT INTO t1 VALUES (1, '{\"a\":1}', 1), (2, '{\"a\":2}', 2)",
        "INSERT INTO t2 VALUES (101, '{\"b\":1}', 3)",
        "INSERT INTO t3 VALUES (901, 'none', -1000)",
        "DROP TABLE t3",
        *(f"ALTER TABLE {shard} {change}" for shard in ("t1", "t2")),
        'INSERT INTO t1 (id, name, n) VALUES (3, \'{"a":"é"}\', 4)',
        *(["UPDATE t1 SET u = UUID()"] if "UUID" in change else []),
        "UPDATE t2 SET n = 9",
        database=task.name,
    )
    refused = task.fault()
    assert refused.event == "ddl.refused"
    ways = [way for way in refused.remedies if "binlog replace" in way or "binlog skip" in way]
    assert any("--repair-now" in way for way in ways) or not instead
    if instead:
        answer = task.task.cli("binlog", "replace", task.name, f"ALTER TABLE t1 {instead}")
    else:
        answer = task.task.cli("binlog", "skip", task.name)
    assert answer.returncode == 0, answer.stderr
    task.resume()
    while (fault := fault_after(task)) is not None:
        end_stop(task, fault)
    compared = task.task.cli(
        "compare", str(task.file), "--tables", f"{task.name}.t", "--repair-now"
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr
    columns = [str(row[0]) for row in source.execute(f"SHOW COLUMNS FROM {task.name}.t1")]
    selected = ", ".join("CONVERT(name USING utf8mb4)" if c == "name" else c for c in columns)
    shards = [(source, f"{task.name}.{shard}") for shard in ("t1", "t2")]
    there = rows_of(target, f"{task.name}.t WHERE id <> 901", selected)
    assert there == union_of(shards, selected)
    assert target.execute(f"SELECT id, n FROM {task.name}.t WHERE id = 901") == ((901, -1000),)

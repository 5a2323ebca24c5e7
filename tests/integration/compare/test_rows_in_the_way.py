"""A chain of rows that need one another's unique values is searched for without the locks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.task_setup import address_of
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare import repair_now as repairs
from replicator.pipeline.compare.compare_plan import plan_comparison
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.doubts import RowDifference
from replicator.routing.columns.member_columns import MemberColumns
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.structure import Column, Table, UniqueKey
from tests.support.tasks.merging import Merging

ROWS = 9
"""Each row of the target has the value of the one before, so each search finds one row more."""


def test_locks_do_not_wait_for_the_search(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repairs, "SEARCH_SECONDS", 0.0, raising=False)
    merging = merging_from(mariadb_source)
    merging.create("x", "(id INT PRIMARY KEY, u INT UNIQUE)")
    merging.do(*(f"INSERT INTO x_1 VALUES ({n}, {n})" for n in range(ROWS)))
    merging.on(merging.target, *(f"INSERT INTO x VALUES ({n}, {n - 1})" for n in range(ROWS)))
    columns = (Column("id", "int(11)"), Column("u", "int(11)"))
    keys = (UniqueKey("PRIMARY", ("id",)), UniqueKey("u", ("u",)))
    target = Table(merging.database, "x", columns, keys, "")
    shard = Table(merging.database, "x_1", columns, keys, "")
    member = Member("a", TableName(merging.database, "x_1"))
    plan = plan_comparison(target, [ComparedShard(member, shard, MemberColumns())])
    servers = CompareServers(
        address_of(merging.task.target_database),
        {"a": address_of(merging.task.sources[0].connection)},
    )
    difference = RowDifference(b"0", b"0\t-1", b"0\t0", str(member), columns=(1,))
    scope = repairs.RepairScope("`nowhere`.`nothing`")
    logged = merging.on(merging.target, "SELECT @@global.general_log, @@global.log_output")[0]
    merging.on(merging.target, "SET GLOBAL log_output='TABLE', GLOBAL general_log=1")
    try:
        assert repairs.repair_now(plan, [difference], servers, scope).rows == ROWS
        statements = merging.on(
            merging.target,
            "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log"
            f" WHERE argument LIKE '%repair\\_begun%' OR argument LIKE '%{merging.database}%'",
        )
    finally:
        merging.on(
            merging.target,
            f"SET GLOBAL general_log={logged[0]}, GLOBAL log_output='{logged[1]}'",
        )
    assert merging.on(merging.target, "SELECT COUNT(*) FROM x WHERE id = u") == ((ROWS,),)
    last = "\n".join(str(text) for (text,) in statements).rpartition("SAVEPOINT repair_begun")[0]
    reads = last.rpartition("SAVEPOINT repair_begun")[2].split("INSERT")[0].split("DELETE")[0]
    assert reads.count("SELECT") <= 3, "the rows, the rows in their way"

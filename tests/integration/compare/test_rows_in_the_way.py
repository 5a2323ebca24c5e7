"""Rows that need one another's unique values are corrected without a search for all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from actors.setup.task_setup import address_of
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare import repair_now as repairs
from replicator.pipeline.compare.compare_plan import ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.doubts import RowDifference
from replicator.routing.columns.member_columns import MemberColumns
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.structure import Column, Table, UniqueKey
from tests.support.tasks.merging import Merging

ROWS = 9
"""Each row of the target has the value of the one before, so each search finds one row more."""


def comparison(merging: Merging) -> tuple[ComparisonPlan, CompareServers, str]:
    """Return what a repair of ``x`` from ``x_1`` takes, and the name of the shard."""
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
    return plan, servers, str(member)


def merging_with(merging: Merging, rows: Sequence[tuple[int, int, int]]) -> Merging:
    """Fill a shard and the target; ``rows``: id, u of the shard, u of the target or -1 for none."""
    merging.create("x", "(id INT PRIMARY KEY, u INT UNIQUE)")
    merging.do(*(f"INSERT INTO x_1 VALUES ({id}, {here})" for id, here, _ in rows))
    there = (f"INSERT INTO x VALUES ({id}, {there})" for id, _, there in rows if there >= 0)
    merging.on(merging.target, *there)
    return merging


def test_a_long_chain_is_corrected_in_many_transactions(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when two shards have numbered their rows: a chain is longer than a transaction may be."""
    monkeypatch.setattr(repairs, "MOST_KEYS", 10)
    chance = random.Random(7)
    here, there = ([*range(60)] for _ in range(2))
    chance.shuffle(here)
    chance.shuffle(there)
    rows = [*zip(range(60), here, there, strict=True)]
    merging = merging_with(merging_from(mariadb_source), rows)
    plan, servers, shard = comparison(merging)
    scope = repairs.RepairScope("`nowhere`.`nothing`")
    differences = [
        RowDifference(b"%d" % i, b"%d\t%d" % (i, old), b"%d\t%d" % (i, new), shard, columns=(1,))
        for i, new, old in rows
        if new != old
    ]
    corrected = 0
    for start in range(0, len(differences), 4):
        some = differences[start : start + 4]
        done = repairs.repair_now(plan, some, servers, scope)
        corrected += done.rows
        count = merging.on(merging.target, "SELECT COUNT(*), COUNT(DISTINCT u) FROM x")
        assert count == ((60, 60),), "a row in the way is never missing"
    assert corrected == len(differences)
    assert merging.on(merging.target, "SELECT id, u FROM x ORDER BY id") == tuple(
        (i, new) for i, new, _ in rows
    )


def test_locks_do_not_wait_for_the_search(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repairs, "SEARCH_SECONDS", 0.0, raising=False)
    # The first row is missing, so it has no value for the one in its way.
    rows = [(n, n, n - 1) for n in range(ROWS)]
    merging = merging_with(merging_from(mariadb_source), rows)
    plan, servers, shard = comparison(merging)
    difference = RowDifference(b"0", None, b"0\t0", shard)
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

"""Sequences stand among a source's tables, and their uses among its rows: they are left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging


@pytest.mark.parametrize("kind", ["mariadb_source", "mariadb11_source"])
async def test_sequences_are_left_out_and_told_of_once(
    merging_from: Callable[..., Merging], request: pytest.FixtureRequest, kind: str
) -> None:
    source: DatabaseServer = request.getfixturevalue(kind)
    merging = merging_from(source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    # Names that are routed to the target of the shards.
    merging.do("CREATE SEQUENCE t_a")
    with capture_logs() as logs:
        async with merging.running() as generation:
            merging.do("INSERT INTO t_1 VALUES (0, 0)")
            await merging.check(generation)
            merging.do(
                "INSERT INTO t_1 VALUES (NEXTVAL(t_a), 1)",
                "CREATE SEQUENCE t_b START WITH 100 NOCACHE",
                "INSERT INTO t_1 VALUES (NEXTVAL(t_b), 2), (NEXTVAL(t_b), 3)",
                "RENAME TABLE t_b TO t_c",
                "INSERT INTO t_1 SELECT NEXTVAL(t_c), 4",
                "SELECT SETVAL(t_c, 500)",
                "ALTER SEQUENCE t_c CACHE 10",
                "DROP TABLE t_a",
                "DROP SEQUENCE t_c",
                "INSERT INTO t_1 VALUES (1000, 5)",
            )
            await merging.check(generation)
    told = [log for log in logs if log["event"] == "sequence.not-replicated"]
    assert sorted(log["sequence"].split(".")[1] for log in told) == ["t_a", "t_b", "t_c"]
    assert not [log for log in logs if log["event"] == "ddl.not-executed"]

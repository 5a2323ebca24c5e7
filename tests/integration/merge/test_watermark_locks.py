"""Writers of a task lock the watermarks of their own buckets, and wait for no other's."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import pytest

from replicator.downstream.fence import Fence
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE, Expected, lock_watermarks
from replicator.downstream.rows.write_session import Session
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import NOTHING_APPLIED
from tests.support.streams.applying import address_of

TOKEN = 7
BUCKETS = 16
EVEN, ODD = range(0, BUCKETS, 2), range(1, BUCKETS, 2)


@pytest.mark.parametrize("server", ["mariadb_target", "mysql_target", "tidb_target"])
@pytest.mark.parametrize(
    ("sources", "targets"), [(1, 1), (2, 1), (1, 3), (3, 3), (8, 3), (40, 3), (3, 60)]
)
def test_other_buckets_and_other_targets_are_free(
    request: pytest.FixtureRequest, server: str, database_name: str, sources: int, targets: int
) -> None:
    target: DatabaseServer = request.getfixturevalue(server)
    watermarks = WATERMARK_TABLE.qualified(database_name, "task")
    fence = Fence(LEASE_TABLE.qualified(database_name, "task"), TOKEN)
    target.execute(
        f"CREATE DATABASE {database_name}",
        WATERMARK_TABLE.create_sql(database_name, "task"),
        LEASE_TABLE.create_sql(database_name, "task"),
        f"INSERT INTO {fence.lease_table} VALUES (1, {TOKEN}, 0, 'here', 1, '', '', NOW(), NOW())",
        f"INSERT INTO {watermarks} VALUES "
        + ",".join(
            f"('s{source}', 'db', 't{number}', {bucket}, 0, 0, 0, {TOKEN}, '', '')"
            for source in range(sources)
            for number in range(targets)
            for bucket in range(BUCKETS)
        ),
    )

    def lock(session: Session, number: int, buckets: Iterable[int]) -> None:
        left = {(f"s{at}", bucket): NOTHING_APPLIED for at in range(sources) for bucket in buckets}
        name = TableName("db", f"t{number}")
        own, _ = lock_watermarks(session, watermarks, fence, name, Expected(0, left))
        assert own == left

    address = address_of(target)
    with closing(Session(address)) as one, closing(Session(address)) as other:
        other.run(b"SET innodb_lock_wait_timeout=1")
        for taken in (EVEN, range(BUCKETS)):
            one.run(b"BEGIN")
            lock(one, 0, taken)
            other.run(b"BEGIN")
            if taken is EVEN:
                lock(other, 0, ODD)
            for number in range(1, targets):
                lock(other, number, range(BUCKETS))
            other.run(b"ROLLBACK")
            one.run(b"ROLLBACK")

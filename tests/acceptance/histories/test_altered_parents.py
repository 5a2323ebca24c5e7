"""A foreign key whose parent is being altered on the target at the same moment."""

from __future__ import annotations

from structlog.testing import capture_logs

from replicator.mysql.names import TableName
from tests.support.tasks.running import settles
from tests.support.tasks.shard_ddl import ShardedEstate

PARENT = "(id INT PRIMARY KEY, v INT)"
CHILD = "CREATE TABLE {t} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t1 (id))"


async def test_a_child_is_created_when_its_parent_is_altered(mariadb_estate: ShardedEstate) -> None:
    """Meanwhile, MariaDB refuses the key: the parent seems to be missing (1005, errno 150)."""
    estate = mariadb_estate
    estate.mode = ""
    estate.create("A1", "B1", table=PARENT)
    estate.put("B1", "{}, 1")
    with capture_logs() as logs:
        async with estate.merging() as generation:
            await estate.settled()
            with (
                estate.target.connect(autocommit=False, database=estate.db) as session,
                session.cursor() as cursor,
            ):
                cursor.execute("SELECT * FROM t")
                estate.ddl("A1", "ADD c INT")
                assert generation.running is not None
                ddl, parent = generation.running.writer.ddl, TableName(estate.db, "t")
                await settles(lambda: ddl.under_way, {parent})
                estate.server("B1").execute(CHILD.format(t="u1"), database=estate.db)
                child = f"{estate.db}.u"
                await settles(
                    lambda: [r for r in logs if r["event"] == "ddl.started"][-1]["target"], child
                )
                assert ddl.under_way == {parent}
                assert estate.target.execute("SHOW TABLES LIKE 'u'", database=estate.db) == ()
                session.rollback()
            estate.shards.append("uB1")
            estate.put("uB1", "{}, 1")
            estate.ddl("B1", "ADD c INT")
            await estate.settled()

"""The meta tables on a real server."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pymysql.err import MySQLError

from replicator.downstream.meta.all_tables import create_tables, drop_tables
from replicator.downstream.meta.checkpoint import MEMBER_TABLE, Checkpoint, MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.downstream.meta.statement_gtids import StatementGtidStore
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import AnchorEvent, ServerIdentity
from replicator.sandbox.server import DatabaseServer
from replicator.schema.registry.registry import KnownStructure, MemberRecord, Provenance
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.watermark import Watermark

TARGET = TableName("m", "t")
STRUCTURE = Table(
    "s",
    "t1",
    (Column("id", "int(11)", nullable=False), Column("ö", "enum('a','ß')", "utf8mb4")),
    (UniqueKey("PRIMARY", ("id",)),),
    "CREATE TABLE `t1` (…)",
)


@pytest.fixture
async def meta(target_server: DatabaseServer, database_name: str) -> AsyncIterator[MetaStore]:
    server = target_server
    address = DatabaseAddress(server.host, server.port, server.user, server.password)
    store = MetaStore(
        Connection(address), database_name, "task", Lease(database_name, "task", this_process())
    )
    await create_tables(store.connection, database_name, "task")
    await store.lease.begin(store.connection)
    await store.choose_buckets(4)
    yield store
    store.connection.close()


def checkpoint(offset: int, *, version: int = 0) -> Checkpoint:
    members = (
        MemberRecord(
            Member("a", TableName("s", "t1")),
            TARGET,
            version,
            7,
            KnownStructure(STRUCTURE, Provenance.DECLARED),
        ),
    )
    watermark = Watermark(version, 12, 3)
    return Checkpoint(
        "a",
        "bin.000001",
        offset,
        "0-1-5",
        ServerIdentity(9, "5b7f", True),
        members,
        low_watermarks=((TARGET, watermark),),
        groups=((TARGET, "a group"),),
        anchor=AnchorEvent("bin.000001", offset - 50, 1_700_000_000, 2**32 - 1),
        prepared=("a bin.000001:4", "a bin.000001:70"),
        high_watermarks=((TARGET, watermark),),
    )


async def test_gtids_are_saved_with_the_first_record_after_them(meta: MetaStore) -> None:
    """Not by a transaction of their own; and again, if the first one fails."""
    gtids = StatementGtidStore(meta)
    revision = meta.lease.revision
    gtids.note("a", (7, 9), "0-1-5")
    gtids.note("a", (7,), "0-1-5")
    assert await gtids.load("a") == {}
    with pytest.raises(MySQLError, match="no_such_table"):
        await meta.write(f"UPDATE {meta.schema}.no_such_table SET a = 1")
    assert await gtids.load("a") == {}
    await meta.write(f"UPDATE {meta.table(MEMBER_TABLE)} SET version = 1")
    assert await gtids.load("a") == {7: "0-1-5", 9: "0-1-5"}
    assert meta.lease.revision == revision + 1
    gtids.note("a", (9,), "0-1-6")
    await gtids.save()
    assert await gtids.load("a") == {7: "0-1-5", 9: "0-1-6"}


async def test_low_watermarks_are_saved_alone(meta: MetaStore) -> None:
    first = checkpoint(100)
    await meta.save([first], members=frozenset({"a"}))
    moved = replace(
        checkpoint(200, version=3),
        low_gtids={TARGET: "0-1-9"},
        high_watermarks=first.high_watermarks,
    )
    await meta.save_low_watermarks([moved], former={"a": first}, expected={})
    found = await meta.load("a")
    assert found is not None
    assert (found.offset, found.members) == (100, first.members)
    assert found.low_watermarks == moved.low_watermarks != first.low_watermarks


async def test_a_checkpoint_is_read_as_it_was_saved(meta: MetaStore) -> None:
    assert await meta.load("a") is None
    await meta.save([checkpoint(100)], members=frozenset({"a"}))
    assert await meta.load("a") == checkpoint(100)
    assert await meta.load("b") is None


async def test_a_bucket_may_be_ahead_of_the_low_watermark(meta: MetaStore) -> None:
    await meta.save([checkpoint(100)], members=frozenset({"a"}))
    await meta.connection.execute(
        f"INSERT INTO {meta.table(WATERMARK_TABLE)}"
        " (source, target_schema, target_table, bucket, version, transaction_key, ordinal)"
        " VALUES ('a', 'm', 't', 2, 0, 13, 1)"
    )
    found = await meta.load("a")
    assert found is not None
    assert (found.low_watermarks, found.high_watermarks) == (
        ((TARGET, (0, 12, 3)),),
        ((TARGET, (0, 13, 1)),),
    )


async def test_members_are_saved_only_where_they_changed(meta: MetaStore) -> None:
    await meta.save([checkpoint(100)], members=frozenset({"a"}))
    await meta.save([checkpoint(200, version=1)], members=frozenset())
    found = await meta.load("a")
    assert found is not None
    assert (found.offset, found.members) == (200, checkpoint(100).members)


async def test_what_was_saved_before_is_left_alone_and_the_rest_is_as_if_saved_anew(
    meta: MetaStore,
) -> None:
    chance = random.Random(5)
    former: dict[str, Checkpoint] = {}
    for number in range(1, 12):
        now = drawn(chance, number)
        await meta.save([now], members=frozenset({"a"}), former=former)
        found = await meta.load("a")
        assert found is not None
        assert sorted(found.members, key=str) == sorted(now.members, key=str)
        assert (dict(found.groups), dict(found.low_watermarks)) == (
            dict(now.groups),
            dict(now.low_watermarks),
        )
        # What is put there by others shows what is written.
        kept = chance.choice(now.members)
        place = (kept.member.name.schema, kept.member.name.table)
        changed = "UPDATE {} SET doubt = %s WHERE schema_name = %s AND table_name = %s"
        sql = changed.format(meta.table(MEMBER_TABLE))
        await meta.connection.execute(sql, ("mark", *place))
        await meta.save([now], members=frozenset({"a"}), former={"a": now})
        found = await meta.load("a")
        assert found is not None
        assert [r.member for r in found.members if r.held.doubt == "mark"] == [kept.member]
        await meta.connection.execute(sql, ("", *place))
        former = {"a": now}
    # Nothing is known of what is there.
    await meta.save([checkpoint(5)], members=frozenset({"a"}))
    found = await meta.load("a")
    assert found is not None
    assert (found.members, found.groups) == (checkpoint(5).members, checkpoint(5).groups)


def drawn(chance: random.Random, number: int) -> Checkpoint:
    """A checkpoint with some of many members, each with one of some structures."""
    kinds = [replace(STRUCTURE, create_sql=f"CREATE {n} {'x' * 200_000 * n}") for n in range(3)]
    names = [TableName("s", f"t{n}") for n in range(8)]
    targets = [TableName("m", f"u{n}") for n in range(4)]
    members = tuple(
        MemberRecord(
            Member("a", name),
            chance.choice(targets),
            chance.randrange(3),
            chance.randrange(3),
            KnownStructure(chance.choice(kinds), Provenance.LEARNED),
        )
        for name in chance.sample(names, chance.randrange(1, 8))
    )
    some = chance.sample(targets, chance.randrange(4))
    return replace(
        checkpoint(number * 100),
        members=members,
        groups=tuple((target, f"state {chance.randrange(3)}") for target in some),
        # They stay: a target that was there has one for ever.
        low_watermarks=tuple((t, Watermark(0, number // 2 + 1, n)) for n, t in enumerate(targets)),
        high_watermarks=(),
    )


async def test_removing_the_meta_tables_forgets_the_task(meta: MetaStore) -> None:
    await meta.save([checkpoint(100)], members=frozenset({"a"}))
    await drop_tables(meta.connection, meta.schema, meta.task)
    left = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
    assert await meta.connection.fetch(left, (meta.schema,)) == [("task_lease",)]
    await create_tables(meta.connection, meta.schema, meta.task)
    assert await meta.load("a") is None


@pytest.mark.parametrize(("ordinal", "buckets"), [(3, 8), (2, 8), (4, 4)])
async def test_the_number_of_buckets_changes_only_when_none_is_ahead_of_the_low_watermark(
    meta: MetaStore, ordinal: int, buckets: int
) -> None:
    await meta.save([checkpoint(100)], members=frozenset({"a"}))
    await meta.connection.execute(
        f"INSERT INTO {meta.table(WATERMARK_TABLE)}"
        " (source, target_schema, target_table, bucket, version, transaction_key, ordinal)"
        " VALUES ('a', 'm', 't', 2, 0, 12, %s)",
        (ordinal,),
    )
    assert await meta.choose_buckets(8) == buckets


async def test_a_source_that_left_the_task_does_not_keep_its_number_of_buckets(
    meta: MetaStore,
) -> None:
    await meta.save([checkpoint(100)], members=frozenset({"a"}))
    assert await meta.choose_buckets(2) == 2
    # Source a is gone; the watermarks of the others are of two buckets from here on.
    await meta.connection.execute(
        f"INSERT INTO {meta.table(WATERMARK_TABLE)}"
        " (source, target_schema, target_table, bucket, version, transaction_key, ordinal)"
        " VALUES ('b', 'm', 't', 1, 0, 12, 3)"
    )
    assert await meta.choose_buckets(8) == 2


async def test_a_new_task_uses_the_number_of_buckets_it_wants(meta: MetaStore) -> None:
    assert await meta.choose_buckets(16) == 16

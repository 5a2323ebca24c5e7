"""Nothing is saved by a run that was replaced, or on a target that has less than was left there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from replicator.downstream.chunk_records import CHUNK_TABLE, lock_chunk
from replicator.downstream.chunks import ChunkRecord, CopyStore
from replicator.downstream.fence import OutOfStepError
from replicator.downstream.lease import LEASE_TABLE, Lease
from replicator.downstream.meta import MetaStore
from replicator.downstream.meta_tables import create_tables
from replicator.downstream.session import Session
from replicator.downstream.watermarks import BucketKey
from replicator.mysql.connection import Connection
from replicator.mysql.names import TableName
from replicator.pipeline.batch import Outcome
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import Watermark
from tests.support.applying import Merge, address_of

SHARD, TARGET = TableName("s", "t1"), TableName("m", "t")
BUCKET: BucketKey = ("a", TARGET, 0)
MakeStore = Callable[[], MetaStore]

pytestmark = pytest.mark.also_tidb


@pytest.fixture
async def make_store(target_server: DatabaseServer, database_name: str) -> AsyncIterator[MakeStore]:
    connections = []

    def make() -> MetaStore:
        connections.append(Connection(address_of(target_server)))
        return MetaStore(connections[-1], database_name, "task", Lease(database_name, "task"))

    await create_tables(make().connection, database_name, "task")
    yield make
    for connection in connections:
        connection.close()


@pytest.fixture
async def store(make_store: MakeStore) -> MetaStore:
    store = make_store()
    await store.lease.begin(store.connection)
    return store


async def lose_a_save(store: MetaStore, by: int = 1) -> None:
    """What a server that has lost its last commits shows."""
    table = store.table(LEASE_TABLE)
    await store.connection.execute(f"UPDATE {table} SET revision = revision - %s", (by,))


async def test_a_save_finds_that_the_one_before_was_lost(store: MetaStore) -> None:
    await store.choose_buckets(4)
    await store.choose_buckets(4)
    await store.confirm()
    await lose_a_save(store)
    with pytest.raises(OutOfStepError, match="number of the last save"):
        await store.confirm()
    with pytest.raises(OutOfStepError, match="number of the last save"):
        await store.choose_buckets(4)
    await store.lease.begin(store.connection)
    await store.choose_buckets(4)


@pytest.mark.parametrize("committed", [False, True])
async def test_a_save_whose_end_is_not_known_may_be_there_or_not(
    store: MetaStore, committed: bool
) -> None:
    with pytest.raises(KeyError):
        async with store.saving():
            raise KeyError("the client leaves")
    if committed:
        await lose_a_save(store, by=-1)
    await store.choose_buckets(4)
    await store.choose_buckets(4)
    await lose_a_save(store)
    with pytest.raises(OutOfStepError):
        await store.choose_buckets(4)


async def test_a_run_that_was_replaced_saves_nothing(
    store: MetaStore, make_store: MakeStore
) -> None:
    await store.choose_buckets(4)
    other = make_store()
    await other.lease.begin(other.connection)
    with pytest.raises(OutOfStepError):
        await store.open_buckets([BUCKET])
    assert await other.watermarks() == {}
    await other.open_buckets([BUCKET])
    assert list(await other.watermarks()) == [BUCKET]


async def test_a_checkpoint_is_not_saved_over_a_watermark_that_was_lost(store: MetaStore) -> None:
    await store.open_buckets([BUCKET])
    left = {BUCKET: Watermark(0, 0, 0)}
    await store.save([], members=frozenset(), left=left)
    with pytest.raises(OutOfStepError) as caught:
        await store.save([], members=frozenset(), left={BUCKET: Watermark(0, 12, 1)})
    assert (caught.value.mismatch.target, caught.value.mismatch.bucket) == ("m.t", 0)


async def test_a_copy_is_not_finished_where_a_chunk_was_lost(store: MetaStore) -> None:
    copies = CopyStore(store)
    await copies.plan("a", [ChunkRecord(SHARD, 1, None, None)])
    with pytest.raises(OutOfStepError, match="chunk 1"):
        await copies.finish("a", None)
    assert await copies.copies() == {}
    table = store.table(CHUNK_TABLE)
    await store.connection.execute(f"UPDATE {table} SET state = 1")
    await copies.finish("a", None)
    assert (await copies.copies())["a"].done


async def test_a_chunk_is_written_by_the_run_that_is_going_on(
    store: MetaStore, make_store: MakeStore, target_server: DatabaseServer
) -> None:
    await CopyStore(store).plan("a", [ChunkRecord(SHARD, 1, None, None)])
    former = store.lease.fence
    other = make_store()
    await other.lease.begin(other.connection)
    table = store.table(CHUNK_TABLE)
    session = Session(address_of(target_server))
    try:
        with pytest.raises(OutOfStepError, match="chunk 1"):
            lock_chunk(session, table, former, "a", SHARD, 1)
        assert not lock_chunk(session, table, other.lease.fence, "a", SHARD, 1)
        with pytest.raises(OutOfStepError, match="chunk 2"):
            lock_chunk(session, table, other.lease.fence, "a", SHARD, 2)
    finally:
        session.close()


@pytest.fixture
def merge(request: pytest.FixtureRequest, target_server: DatabaseServer, name: str) -> Merge:
    spark, source = map(request.getfixturevalue, ("spark", "mariadb_source"))
    return Merge(spark, source, target_server, name)


@pytest.fixture
def name(database_name: str) -> str:
    return f"{database_name}_x"


@pytest.mark.parametrize("lost", ["watermark", "row", "save", "token"])
def test_a_bucket_that_is_out_of_step_is_not_written(merge: Merge, lost: str) -> None:
    merge.create("id INT")
    first = merge.record("INSERT INTO a.t VALUES (1)")
    (outcome,) = merge.apply(first).outcomes
    source = f"{merge.name}_a"
    key = (source, TableName(merge.name, "t"), outcome.bucket)
    batch = merge.record("INSERT INTO a.t VALUES (1)")
    batch.left = {key: outcome.left[source]}
    table = merge.settings.watermark_table
    harm = {
        "watermark": f"UPDATE {table} SET transaction_key = 1, ordinal = 0",
        "row": f"DELETE FROM {table}",
        "token": f"UPDATE {table} SET token = 8",
        "save": "DO 0",
    }
    merge.target.execute(harm[lost])
    if lost == "save":
        batch = replace(batch, revision=5)
    (failure,) = merge.apply(batch).failures
    assert failure.outcome is Outcome.OUT_OF_STEP
    assert failure.mismatch is not None
    assert merge.rows() == [(1,)]

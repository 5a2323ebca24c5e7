"""Nothing is saved by a run that was replaced, or on a target that has less than was left there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace

import anyio
import pytest
from structlog.testing import capture_logs

from actors.task.resources.lease_keeper import LeaseKeeper
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.all_tables import create_tables
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunk_records import CHUNK_TABLE, lock_chunk
from replicator.downstream.meta.chunks import ChunkRecord, CopyStore
from replicator.downstream.meta.lease import (
    LEASE_TABLE,
    Lease,
    LeaseHeldError,
    LeaseHolder,
    LeaseLostError,
    this_process,
)
from replicator.downstream.rows.watermark_table import BucketKey
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.pipeline.apply.batch import WriteOutcome
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import Watermark
from tests.support.streams.applying import Merge, address_of
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE

SHARD, TARGET = TableName("s", "t1"), TableName("m", "t")
BUCKET: BucketKey = ("a", TARGET, 0)
MakeStore = Callable[..., MetaStore]

HERE = this_process()
ELSEWHERE = LeaseHolder("db9", 4711, "another boot", "1")

pytestmark = pytest.mark.also_tidb


@pytest.fixture
async def make_store(target_server: DatabaseServer, database_name: str) -> AsyncIterator[MakeStore]:
    connections = []

    def make(holder: LeaseHolder = HERE, seconds: float = 600.0) -> MetaStore:
        connections.append(Connection(address_of(target_server)))
        lease = Lease(database_name, "task", holder, seconds=seconds)
        return MetaStore(connections[-1], database_name, "task", lease)

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
    with pytest.raises(FencedError, match="number of the last save"):
        await store.confirm()
    with pytest.raises(FencedError, match="number of the last save"):
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
    with pytest.raises(FencedError):
        await store.choose_buckets(4)


async def test_a_run_that_was_replaced_saves_nothing(
    store: MetaStore, make_store: MakeStore
) -> None:
    await store.choose_buckets(4)
    other = make_store()
    await other.lease.begin(other.connection)
    with pytest.raises(FencedError):
        await store.open_buckets([BUCKET])
    assert await other.watermarks() == {}
    await other.open_buckets([BUCKET])
    assert list(await other.watermarks()) == [BUCKET]


async def begun_by(make_store: MakeStore, holder: LeaseHolder, seconds: float = 600.0) -> MetaStore:
    store = make_store(holder, seconds)
    await store.lease.begin(store.connection)
    return store


async def until_expired(store: MetaStore) -> None:
    """By the target's clock, which is the one that counts."""
    sql = f"SELECT expires_at <= UTC_TIMESTAMP(6) FROM {store.table(LEASE_TABLE)}"
    with anyio.fail_after(30):
        while await store.connection.fetch(sql) != [(1,)]:
            await anyio.sleep(0.05)


async def test_a_lease_that_another_host_has_is_not_taken(make_store: MakeStore) -> None:
    other = await begun_by(make_store, ELSEWHERE)
    here = make_store()
    with pytest.raises(LeaseHeldError, match=r"process 4711 on host db9.*replicator stop"):
        await here.lease.begin(here.connection)
    await other.confirm()


async def test_a_lease_that_was_given_back_is_free(make_store: MakeStore) -> None:
    other = await begun_by(make_store, ELSEWHERE)
    await other.lease.release(other.connection)
    await begun_by(make_store, HERE)


async def test_a_lease_is_free_at_once_where_its_holder_is_surely_gone(
    make_store: MakeStore,
) -> None:
    await begun_by(make_store, replace(HERE, begun="before"))
    await begun_by(make_store, HERE)


async def test_who_lost_the_lease_learns_who_has_it_and_saves_nothing(
    make_store: MakeStore,
) -> None:
    here = await begun_by(make_store, HERE, seconds=0.2)
    lease, connection = here.lease, here.connection
    await until_expired(here)
    other = await begun_by(make_store, ELSEWHERE)
    await other.choose_buckets(4)
    for attempt in (
        lambda: here.choose_buckets(8),
        lambda: here.save([], members=frozenset()),
        lambda: here.open_buckets([BUCKET]),
        here.confirm,
        lambda: lease.renew(connection),
        lambda: lease.begin(connection),
    ):
        with pytest.raises(LeaseLostError, match="process 4711 on host db9, since 20"):
            await attempt()
    await lease.release(connection)
    assert await other.watermarks() == {}
    await other.choose_buckets(4)


async def test_a_lease_is_kept_by_renewing_it_and_by_saving(make_store: MakeStore) -> None:
    here = await begun_by(make_store, HERE)
    table = here.table(LEASE_TABLE)
    remains = f"SELECT expires_at > UTC_TIMESTAMP(6) + INTERVAL 60 SECOND FROM {table}"
    for keep in (lambda: here.lease.renew(here.connection), lambda: here.choose_buckets(4)):
        # Nobody takes it meanwhile.
        await here.connection.execute(f"UPDATE {table} SET expires_at = UTC_TIMESTAMP(6)")
        assert await here.connection.fetch(remains) == [(0,)]
        await keep()
        assert await here.connection.fetch(remains) == [(1,)]


async def test_a_target_that_lost_the_taking_is_no_other_process(make_store: MakeStore) -> None:
    other = await begun_by(make_store, ELSEWHERE)
    await other.lease.release(other.connection)
    columns = "id, token, revision, host, process, machine, begun, taken_at, expires_at"
    table = other.table(LEASE_TABLE)
    before = (await other.connection.fetch(f"SELECT {columns} FROM {table}"))[0]
    here = await begun_by(make_store, HERE)
    marks = ", ".join(["%s"] * len(before))
    await here.connection.execute(f"REPLACE INTO {table} ({columns}) VALUES ({marks})", before)
    with pytest.raises(FencedError):
        await here.choose_buckets(4)
    await here.lease.renew(here.connection)
    await here.lease.begin(here.connection)
    await here.choose_buckets(4)


def keeper_of(store: MetaStore) -> LeaseKeeper:
    return LeaseKeeper(store.connection.address, store.schema, store.task, store.lease)


async def test_a_start_waits_for_a_lease_that_nobody_renews(make_store: MakeStore) -> None:
    other = await begun_by(make_store, ELSEWHERE, seconds=600)
    keeper = keeper_of(make_store())
    with anyio.fail_after(PATIENCE), capture_logs() as logs:
        async with anyio.create_task_group() as tasks:

            async def take() -> None:
                assert await keeper.take(anyio.Event())

            tasks.start_soon(take)
            while not logs:
                await anyio.sleep(LOOK_SECONDS)
            expired = f"UPDATE {other.table(LEASE_TABLE)} SET expires_at = UTC_TIMESTAMP(6)"
            await other.connection.execute(expired)
    waited = [(e["event"], e["host"], e["process"]) for e in logs if e["log_level"] == "warning"]
    assert waited == [("task.lease-waiting", "db9", 4711)]
    await keeper.release()


async def test_a_start_is_refused_where_the_lease_is_renewed(make_store: MakeStore) -> None:
    other = await begun_by(make_store, ELSEWHERE, seconds=20)
    keeper = keeper_of(make_store())

    async def renew() -> None:
        while True:
            await anyio.sleep(0.2)
            await other.lease.renew(other.connection)

    with anyio.fail_after(15):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(renew)
            with pytest.raises(LeaseHeldError):
                await keeper.take(anyio.Event())
            tasks.cancel_scope.cancel()
    await keeper.release()


async def test_a_start_that_waits_for_the_lease_can_be_stopped(make_store: MakeStore) -> None:
    await begun_by(make_store, ELSEWHERE)
    keeper, stop = keeper_of(make_store()), anyio.Event()
    taken = []

    async def take() -> None:
        taken.append(await keeper.take(stop))

    with anyio.fail_after(15):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await anyio.sleep(0.5)
            stop.set()
    assert taken == [False]
    await keeper.release()


async def test_a_checkpoint_is_not_saved_over_a_watermark_that_was_lost(store: MetaStore) -> None:
    await store.open_buckets([BUCKET])
    left = {BUCKET: Watermark(0, 0, 0)}
    await store.save([], members=frozenset(), expected=left)
    with pytest.raises(FencedError) as caught:
        await store.save([], members=frozenset(), expected={BUCKET: Watermark(0, 12, 1)})
    assert (caught.value.mismatch.target, caught.value.mismatch.bucket) == ("m.t", 0)


async def test_a_copy_is_not_finished_where_a_chunk_was_lost(store: MetaStore) -> None:
    copies = CopyStore(store)
    await copies.plan("a", [ChunkRecord(SHARD, 1, None, None)])
    with pytest.raises(FencedError, match="chunk 1"):
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
    with closing(Session(address_of(target_server))) as session:
        with pytest.raises(FencedError, match="chunk 1"):
            lock_chunk(session, table, former, "a", SHARD, 1)
        assert not lock_chunk(session, table, other.lease.fence, "a", SHARD, 1)
        with pytest.raises(FencedError, match="chunk 2"):
            lock_chunk(session, table, other.lease.fence, "a", SHARD, 2)


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
    [((_, bucket), mark)] = outcome.left.items()
    key = (source, TableName(merge.name, "t"), bucket)
    batch = replace(merge.record("INSERT INTO a.t VALUES (1)"), left={key: mark})
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
    assert failure.outcome is WriteOutcome.OUT_OF_STEP
    assert failure.mismatch is not None
    assert merge.rows() == [(1,)]

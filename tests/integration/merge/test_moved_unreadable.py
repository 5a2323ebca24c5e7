"""A row that moves into a shard that the account can't read arrives after the GRANT, at last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from actors.reading import purge_watch
from actors.reconciling import key_reconciler
from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from replicator.status import UnreadableShard
from tests.support.tasks.copying import copied_some
from tests.support.tasks.row_owners import Owners
from tests.support.tasks.running import copied, settles

SAFE = {"syncers": {"sync": {"checkpoint-flush-interval": 1, "safe-mode": True}}}


@pytest.fixture
def owners(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Owners]:
    for name in ("SURVEY_SECONDS", "GRACE_SECONDS"):
        monkeypatch.setattr(key_reconciler, name, 0.5)
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.2)
    made = Owners(database_name, mariadb_source, mariadb_target, spark, tmp_path)
    yield made
    made.clean()


def unreadable(generation: Generation) -> tuple[UnreadableShard, ...]:
    return generation.counts.unreadable.status()


async def shown(generation: Generation, owners: Owners) -> None:
    """Wait until the status names the shard, its GRANT and the target that may lack rows."""
    target = f"{owners.db}.t"
    with anyio.fail_after(60):
        while not any(target in shard.targets for shard in unreadable(generation)):
            await anyio.sleep(0.1)
    [shard] = unreadable(generation)
    assert shard.shard == f"{owners.db}_3.t"
    assert "GRANT SELECT ON" in shard.remedy


async def granted(generation: Generation, owners: Owners, wanted: list[int]) -> None:
    """After the GRANT the target has all rows, and the status names the shard no more."""
    owners.grant(3)
    await settles(lambda: owners.rows(), wanted)
    await settles(lambda: unreadable(generation), ())


async def move(owners: Owners, key: int, old: int = 1) -> None:
    """The old shard loses the row in a later batch than the new one gets it."""
    owners.insert(3, f"({key},7)")
    value = f"SELECT v FROM {owners.db}.t WHERE id={key}"
    await settles(lambda: owners.target.execute(value), ((7,),))
    owners.source.execute("SELECT 1", f"DELETE FROM {owners.db}_{old}.t WHERE id={key}")


@pytest.mark.parametrize(
    "way", ["revoked", *(pytest.param(w, marks=pytest.mark.slow) for w in ("never", "restarted"))]
)
async def test_in_safe_mode(owners: Owners, way: str) -> None:
    owners.more |= SAFE
    owners.schema(1, "(1,1),(2,2)")
    if way != "never":
        owners.schema(3, "(31,1)")
    first = [1, 2] if way == "never" else [1, 2, 31]
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), first)
        if way == "never":
            owners.schema(3, granted=False)
        else:
            owners.revoke(3)
        await move(owners, 1)
        await settles(lambda: 1 not in owners.rows(), True)
        await shown(generation, owners)
        if way != "restarted":
            await granted(generation, owners, first)
    if way == "restarted":
        async with owners.running() as generation:
            await shown(generation, owners)
            await granted(generation, owners, first)


@pytest.mark.slow
@pytest.mark.parametrize("back", [False, True], ids=["into", "back"])
async def test_two_sources(owners: Owners, mysql_source: DatabaseServer, back: bool) -> None:
    owners.more |= SAFE
    name = f"{owners.db}_4"
    mysql_source.execute(
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {name}.t VALUES (1,1),(2,2)",
    )
    owners.others["b"] = mysql_source
    try:
        owners.schema(3, "(31,1)")
        async with owners.running() as generation:
            await copied(generation)
            await settles(lambda: owners.rows(), [1, 2, 31])
            owners.revoke(3)
            owners.insert(3, "(1,7)")
            value = f"SELECT v FROM {owners.db}.t WHERE id=1"
            await settles(lambda: owners.target.execute(value), ((7,),))
            mysql_source.execute("SELECT 1", f"DELETE FROM {name}.t WHERE id=1")
            await settles(lambda: owners.rows(), [2, 31])
            await shown(generation, owners)
            if back:
                mysql_source.execute("SELECT 1", f"INSERT INTO {name}.t VALUES (1,9)")
                await settles(lambda: owners.rows(), [1, 2, 31])
                owners.source.execute("SELECT 1", f"DELETE FROM {owners.db}_3.t WHERE id=1")
                await settles(lambda: owners.rows(), [2, 31])
            await granted(generation, owners, [1, 2, 31])
    finally:
        mysql_source.execute(f"DROP DATABASE {name}")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
@pytest.mark.parametrize("early", [False, True], ids=["after", "before"])
async def test_while_a_lock_is_open(owners: Owners, mode: str, early: bool) -> None:
    """The GRANT comes before or after the last shard makes the change."""
    owners.more |= {**SAFE, "shard-mode": mode}
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(3, "(31,1)")
    add = "ADD COLUMN c INT DEFAULT 5" if mode == "pessimistic" else "DROP COLUMN v"
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 31])
        owners.source.execute("SELECT 1", f"ALTER TABLE {owners.db}_1.t {add}")
        owners.revoke(3)
        await move(owners, 1)
        if early:
            owners.grant(3)
        owners.source.execute("SELECT 1", f"ALTER TABLE {owners.db}_3.t {add}")
        owners.source.execute("SELECT 1", f"UPDATE {owners.db}_1.t SET id=9 WHERE id=2")
        await settles(lambda: 9 in owners.rows(), True)
        if not early:
            await shown(generation, owners)
        await granted(generation, owners, [1, 9, 31])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["revoked", "never"])
async def test_the_overlap_after_a_copy(owners: Owners, way: str) -> None:
    owners.more |= {
        "mydumpers": {"small": {"rows": 50, "threads": 1}},
        "loaders": {"moving": {"on-duplicate-logical": "replace"}},
        "copy": {"rows-per-second": 100},
    }
    owners.instance |= {"mydumper-config-name": "small", "loader-config-name": "moving"}
    owners.schema(1, ",".join(f"({n},1)" for n in range(1, 501)))
    if way == "revoked":
        owners.schema(3, "(3001,1)")
    more = [3001] if way == "revoked" else []
    with capture_logs() as logged:
        async with owners.running() as generation:
            await copied_some(generation, 5)
            if way == "never":
                owners.schema(3, granted=False)
            owners.insert(3, "(1,7),(400,7)")
            owners.source.execute("SELECT 1", f"DELETE FROM {owners.db}_1.t WHERE id=1")
            with anyio.fail_after(60):
                while generation.copy is None or not generation.copy.progress.finished:
                    await anyio.sleep(0.1)
            if way == "revoked":
                owners.revoke(3)
            owners.source.execute("SELECT 1", f"DELETE FROM {owners.db}_1.t WHERE id=400")
            await copied(generation)
            await shown(generation, owners)
            await granted(generation, owners, [*range(1, 501), *more])
    assert any(entry["event"] == "moved.unreadable" for entry in logged)

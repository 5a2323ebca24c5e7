"""Retired shards: their rows stay on the target, and nothing waits for the shards any more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.saved.retired_shards import retirements_of
from actors.task.generation import Generation
from actors.task.operator.retire_command import RetireCommand
from actors.task.startup import shard_retirement
from config.models import Task
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, settles
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.task_files import load

pytestmark = pytest.mark.also_tidb(slow=True)

MODES = [pytest.param("", marks=pytest.mark.slow), "optimistic", "pessimistic"]
TABLE = "(id INT PRIMARY KEY, v INT)"
REPAIR = CompareOptions(repair_now=True)


def member(estate: ShardedEstate, shard: str) -> Sequence[str]:
    return (shard.lstrip("u")[0].lower(), *estate.name(shard).split("."))


def task_of(estate: ShardedEstate) -> Task:
    return load(estate._folder, estate.task)


async def retired(
    generation: Generation,
    servers: Mapping[str, DatabaseServer],
    *shards: Sequence[str],
    sources: Collection[str] = (),
) -> tuple[str, ...]:
    """Ask until it is done, or only the operator can help; the reasons then."""
    ends = {name: str(end_of(server)) for name, server in servers.items()}
    named = {*sources, *(source for source, *_ in shards)}
    arguments: dict[str, Any] = {
        "sources": list(sources),
        "shards": [list(shard) for shard in shards],
        "ends": {name: end for name, end in ends.items() if name in named},
    }
    with anyio.fail_after(PATIENCE):
        while True:
            reply = RetireCommand(generation.running, generation.counts).reply(arguments)
            if not reply.ok:
                return (reply.error,)
            if reply.body["done"]:
                return ()
            if reply.body["final"]:
                return tuple(map(str, reply.body["reasons"]))
            await anyio.sleep(LOOK_SECONDS)


async def retire(estate: ShardedEstate, *shards: str, source: str = "") -> tuple[str, ...]:
    assert estate.generation is not None
    names = [member(estate, shard) for shard in shards]
    gone = [s for s in estate.shards if s in shards or member(estate, s)[0] == source]
    reasons = await retired(
        estate.generation, estate.sources, *names, sources=[source] if source else []
    )
    if not reasons:
        estate.shards = [shard for shard in estate.shards if shard not in gone]
        if source:
            del estate.sources[source]
    return reasons


async def compared(estate: ShardedEstate) -> TargetComparison:
    async def context() -> object:
        return estate._spark

    found = await TargetComparer(task_of(estate), REPAIR, context).run()  # type: ignore[arg-type]
    [result] = [r for r in found if str(r.target) == f"{estate.db}.t"]
    return result


async def holding(estate: ShardedEstate, number: int) -> None:
    """The target has so many rows, and no more come."""
    await estate.caught_up()
    await settles(lambda: sum(estate.rows("id").values()), number)


@pytest.mark.parametrize("mode", MODES)
async def test_a_retired_shard_is_followed_no_more(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "A2", "B1", table=TABLE)
    with capture_logs() as logged:
        async with estate.merging():
            for shard in estate.shards:
                estate.put(shard, "{}, 1")
            await estate.settled()
            assert await retire(estate, "A2") == ()
            estate.put("A2", "{}, 2")
            estate.put("A2", "{}, 2")
            estate.put("A1", "{}, 3")
            await holding(estate, 4)
            # The last shard that the change has waited for is gone.
            for shard in ("A1", "B1"):
                estate.ddl(shard, "ADD c INT DEFAULT 7")
                estate.put(shard, "{}, 4, 8")
            await holding(estate, 6)
            assert estate.views() == []
        async with estate.merging() as generation:
            estate.put("A2", "{}, 2")
            estate.put("B1", "{}, 5, 9")
            await holding(estate, 7)
            [shown] = generation.counts.retiring.status()
            assert (shown.source, shown.target) == ("a", f"{estate.db}.t")
            result = await compared(estate)
    assert (result.failure, result.missing, result.extra, result.repaired) == ("", 0, 0, 0)
    assert sum(estate.rows("id").values()) == 7
    told = [e for e in logged if e["event"] == "shard.retired-rows"]
    assert [e["shard"] for e in told] == [estate.name("A2")] * 2, "once in each run"


@pytest.mark.parametrize("mode", MODES)
async def test_an_open_change_does_not_wait_for_a_retired_shard(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """One that lacks it may go; one whose rows it holds may not."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "A2", "B1", table=TABLE)
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 1")
        await estate.settled()
        for shard in ("A1", "B1"):
            estate.ddl(shard, "MODIFY v BIGINT")
            estate.put(shard, "{}, 2")
        await estate.caught_up()
        if mode == "pessimistic":
            [reason] = await retire(estate, "A1")
            assert "rows of a: " in reason, reason
            assert len(estate.views()) == 1
        assert await retire(estate, "A2") == ()
        await holding(estate, 5)
        await estate.caught_up()
        assert estate.views() == []
        columns = dict(estate.columns(estate.target, f"{estate.db}.t"))
        assert columns["v"].startswith("bigint")


@pytest.mark.parametrize("mode", MODES)
async def test_a_retired_source_may_leave_the_task_file(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1", "uA1", "uB1", table=TABLE)
    async with estate.merging() as generation:
        for shard in estate.shards:
            estate.put(shard, "{}, 1")
        await estate.settled()
        estate.ddl("A1", "ADD c INT DEFAULT 7")
        estate.put("A1", "{}, 2, 8")
        await estate.caught_up()
        assert await retire(estate, source="b") == ()
        await holding(estate, 3)
        assert estate.views() == []
        await settles(lambda: set(estate.running.units), {"a"})
        assert await retire(estate, source="a") != (), "nothing would be left"
        assert {one.member.source for one in generation.counts.retiring.done} == {"b"}
    with capture_logs() as logged:
        async with estate.merging():
            estate.put("A1", "{}, 3, 9")
            await holding(estate, 4)
        values = dict(estate.task)
        for key in ("sources", "mysql-instances"):
            listed = values[key]
            assert isinstance(listed, list)
            values[key] = [one for one in listed if one["source-id"] == "a"]
        estate.task = values
        async with estate.merging():
            estate.put("A1", "{}, 4, 9")
            await holding(estate, 5)
            result = await compared(estate)
    assert not [e for e in logged if e["event"] == "task.source-left-out"]
    assert (result.failure, result.extra, result.repaired, result.retired) == ("", 0, 0, 1)
    assert any("it is retired" in remark for remark in result.remarks), result.remarks


async def test_the_target_of_retired_rows_is_not_dropped(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.mode = ""
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 1")
        await estate.settled()
        assert await retire(estate, "B1") == ()
        estate.run("A1", "DROP TABLE {t}")
        await estate.caught_up()
    async with estate.merging():
        await estate.caught_up()
    assert sum(estate.rows("id").values()) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_a_truncation_does_not_remove_retired_rows(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "A2", "B1", table=TABLE)
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 1")
        await estate.settled()
        assert await retire(estate, "A2") == ()
        for shard in ("A1", "B1"):
            estate.run(shard, "TRUNCATE TABLE {t}")
        await estate.caught_up()
        assert estate.views(), "it waits for the operator"
        assert sum(estate.rows("id").values()) == 3
        if mode != "pessimistic":
            ways = {way.text for lock in estate.running.open_locks() for way in lock.remedies}
            assert all("run the statement" not in way for way in ways), "it would not help"
            assert any("`replicator binlog skip`" in way for way in ways)
            return
        [lock] = estate.running.open_locks()
        owner = lock.view.owner or ""
        await estate.running.coordination.unlock(lock.id, owner=owner, skip=True)
        await estate.caught_up()
        assert estate.views() == []
        estate.put("A1", "{}, 2")
        await holding(estate, 4)


@pytest.mark.parametrize("mode", MODES)
async def test_a_retirement_that_was_cut_off_can_be_asked_for_again(
    mariadb_estate: ShardedEstate, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the shard has left its target's answers, and before anything else is saved."""

    class CrashError(Exception):
        pass

    def crash(_: object) -> None:
        raise CrashError

    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "A2", "B1", table=TABLE)

    async def killed() -> None:
        async with estate.merging():
            for shard in estate.shards:
                estate.put(shard, "{}, 1")
            await estate.settled()
            await retire(estate, "A2")

    with monkeypatch.context() as patched:
        patched.setattr(shard_retirement, "reach", crash)
        with pytest.raises(ExceptionGroup):
            await killed()
    assert await retirements_of(task_of(estate)) == ()
    async with estate.merging():
        estate.put("A2", "{}, 2")
        await estate.settled()
        assert await retire(estate, "A2") == ()
        estate.put("A2", "{}, 3")
        for shard in ("A1", "B1"):
            estate.ddl(shard, "ADD c INT DEFAULT 7")
            estate.put(shard, "{}, 4, 8")
        await holding(estate, 6)
        assert estate.views() == []

"""Rolling verification: all rows of the targets are compared once per cycle."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from structlog.testing import capture_logs

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from replicator.status import VerifiedTarget
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v INT, s VARCHAR(40))"


def verified(merging: Merging, cycle: str) -> Merging:
    """Let a task verify its targets once per cycle; create 100 rows on each source."""
    merging.mode = "all"
    merging.more["validators"] = {"all": {"mode": "rolling", "cycle": cycle}}
    merging.instance["validator-config-name"] = "all"
    merging.create("x", X)
    for number, server in enumerate(merging.sources.values()):
        rows = ",".join(f"({1000 * number + n}, {n}, 'a')" for n in range(100))
        merging.on(server, f"INSERT INTO x_1 VALUES {rows}")
    return merging


async def until(generation: Generation, done: Callable[[VerifiedTarget], bool]) -> VerifiedTarget:
    with anyio.fail_after(PATIENCE):
        while not (found := [v for v in generation.counts.verified.values() if done(v)]):
            await anyio.sleep(0.05)
    return found[0]


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("answer", ["reconcile", "stop"])
async def test_rows_that_somebody_has_changed_are_found_in_the_next_cycle(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    answer: str,
) -> None:
    """They are corrected, unless the task file says that they stay."""
    merging = verified(merging_from(mariadb_source, mysql_source), "2s")
    merging.more["on-unproven-change"] = answer
    async with merging.running() as generation:
        await merging.copied(generation)
        equal = await until(generation, lambda target: target.at is not None)
        assert (equal.rows, equal.differing) == (200, 0)
        with capture_logs() as logs:
            merging.on(
                merging.target,
                "UPDATE x SET v = -1 WHERE id = 5",
                "DELETE FROM x WHERE id = 1007",
                "INSERT INTO x VALUES (9999, 1, 'alone')",
            )
            found = await until(generation, lambda target: target.differing == 3)
            (told, *_) = [e for e in logs if e["event"] == "verification.differs"]
            assert (told["missing"], told["extra"], told["different"]) == (1, 1, 1)
            assert told["queued"] == (answer == "reconcile")
            assert str(found).endswith("3 rows differ")
            if answer == "reconcile":
                await until(generation, lambda target: target.differing == 0)
                (ended,) = [e for e in logs if e["event"] == "reconcile.finished"]
                assert ended["corrected"] == 3
    spoiled = "SELECT COUNT(*), SUM(id = 1007), SUM(v = -1) FROM x"
    found_rows = merging.target.execute(spoiled, database=merging.database)
    assert found_rows == (((200, 1, 0) if answer == "reconcile" else (200, 0, 1)),)


async def test_a_target_is_verified_once_per_cycle_also_after_a_restart(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = verified(merging_from(mariadb_source), "1h")
    async with merging.running() as generation:
        await merging.copied(generation)
        first = await until(generation, lambda target: target.at is not None)
    with capture_logs() as logs:
        async with merging.running() as generation:
            again = await until(generation, lambda target: True)
            merging.do("INSERT INTO x_1 VALUES (5000, 1, 'b')")
            await merging.caught_up(generation)
    assert again.at == first.at
    assert not [entry for entry in logs if entry["event"] == "verification.finished"]


async def test_rows_behind_a_lock_do_not_count_as_differing(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mysql_source: DatabaseServer
) -> None:
    merging = verified(merging_from(mariadb_source, mysql_source), "1s")
    merging.more["shard-mode"] = "pessimistic"
    shards = list(merging.sources.values())
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(
            shards[0],
            "ALTER TABLE x_1 ADD c INT NOT NULL DEFAULT 3",
            "INSERT INTO x_1 VALUES (5000, 1, 'b', 4)",
        )
        waits = await until(generation, lambda target: "schema change" in target.reason)
        assert waits.differing == 0
        merging.on(shards[1], "ALTER TABLE x_1 ADD c INT NOT NULL DEFAULT 3")
        equal = await until(generation, lambda target: target.rows == 201)
        assert (equal.differing, equal.reason) == (0, "")

"""Rows are validated while the task runs: spoiled ones are found, rows on their way are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import anyio.to_thread
import pytest

from actors.task.generation import Generation
from actors.validating.operator_answers import answer_validation, validation_status
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v INT, s VARCHAR(40))"
PATIENCE = 60.0


def validated(
    merging: Merging, mode: str = "full", settings: Mapping[str, object] | None = None
) -> None:
    merging.more["validators"] = {
        "quick": {
            "mode": mode,
            "validate-interval": "500ms",
            "check-interval": "300ms",
            "row-error-delay": "1s",
            **(settings or {}),
        }
    }
    merging.instance["validator-config-name"] = "quick"
    # Otherwise, the task would correct the rows.
    merging.more["on-unproven-change"] = "stop"
    merging.show_values = True


async def until(generation: Generation, done: Callable[[Generation], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not done(generation):
            await anyio.sleep(0.05)


def errors(generation: Generation) -> int:
    return generation.counts.validation.errors.get("new", 0)


def settled(generation: Generation) -> bool:
    backlog = generation.counts.validation
    return not backlog.waiting_count and not backlog.suspects and backlog.checked > 0


async def listed(merging: Merging, generation: Generation, action: str, *ids: int) -> object:
    reply = await answer_validation(
        merging.task,
        generation.lease,
        generation.counts.validation,
        {"action": action, "ids": list(ids)},
    )
    assert reply.ok, reply
    return reply.body.get("errors")


@pytest.mark.parametrize("mode", ["full", "fast"])
async def test_rows_that_are_spoiled_after_they_were_applied_are_found(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mode: str,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.create("x", X, shards=2)
    validated(merging, mode)
    async with merging.running() as generation:
        for number, server in enumerate(merging.sources.values()):
            rows = [f"INSERT INTO x_1 VALUES ({number}{n:03}, {n}, 'a\\tb')" for n in range(50)]
            merging.on(server, *rows)
        await merging.caught_up(generation)
        target = merging.target
        merging.on(target, "UPDATE x SET v=v+1 WHERE id=7", "DELETE FROM x WHERE id=1008")
        await until(generation, lambda g: errors(g) == (2 if mode == "full" else 1))
        await until(generation, settled)
        found = await listed(merging, generation, "show-error")
        assert isinstance(found, list)
        shards = {error["key"][0]: (error["kind"], error["columns"]) for error in found}
        lost = {"1008": ("missing", "")}
        assert shards == (
            {"7": ("different", "v: '7' in the shard, '8' on the target"), **lost}
            if mode == "full"
            else lost
        )


async def test_what_the_operator_says_of_errors_is_kept_and_survives_a_restart(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("x", X)
    validated(merging)
    async with merging.running() as generation:
        merging.do(*(f"INSERT INTO x_1 VALUES ({n}, {n}, '')" for n in range(5)))
        await merging.caught_up(generation)
        merging.on(merging.target, "UPDATE x SET s=NULL WHERE id IN (1, 2, 3)")
        await until(generation, lambda g: errors(g) == 3)
        found = await listed(merging, generation, "show-error")
        assert isinstance(found, list)
        first, second, _ = (error["id"] for error in found)
        await listed(merging, generation, "ignore-error", first)
        await listed(merging, generation, "resolve-error", second)
    async with merging.running() as generation:
        await until(generation, lambda g: bool(g.counts.validation.errors))
        status = validation_status(generation.counts.validation)
        assert status is not None
        assert (status.errors, status.ignored, status.resolved) == (1, 1, 1)
        await listed(merging, generation, "clear-error")
        found = await listed(merging, generation, "show-error")
        assert isinstance(found, list)
        assert [error["state"] for error in found] == ["new"]


async def test_keys_that_wait_or_are_suspected_when_the_task_ends_are_validated_after_it(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """Those that wait, one that differs, and one of a shard that is written to behind the end."""
    merging = merging_from(mariadb_source)
    merging.create("x", X, shards=2)
    validated(merging, settings={"row-error-delay": "1h", "check-interval": "1h"})
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, '')")
        await merging.caught_up(generation)
        merging.on(merging.target, "UPDATE x SET v=2 WHERE id=1")
        await until(generation, lambda g: len(g.counts.validation.suspects) == 1)
    validated(merging, settings={"validate-interval": "1h"})
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        merging.do(*(f"INSERT INTO x_{n} VALUES ({n}0, 1, 'a\\tb')" for n in (1, 2)))
        await merging.caught_up(generation)
        assert generation.counts.validation.waiting_count == 2
        assert len(generation.counts.validation.suspects) == 1
    merging.on(merging.target, "UPDATE x SET v=2 WHERE id=10", "DELETE FROM x WHERE id=20")
    validated(merging)
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await until(generation, lambda g: errors(g) == 3)
        await until(generation, settled)
        found = await listed(merging, generation, "show-error")
        assert isinstance(found, list)
        assert {error["key"][0] for error in found} == {"1", "10", "20"}
    async with merging.running() as generation:
        await until(generation, lambda g: bool(g.counts.validation.errors))
        assert settled(generation) or not generation.counts.validation.waiting_count


class Writer:
    """A client that changes the same rows all the time, and moves rows between shards."""

    def __init__(self, merging: Merging) -> None:
        self._merging = merging
        self.ended = False
        self.rounds = 0

    def write(self) -> None:
        while not self.ended:
            self.rounds += 1
            key = self.rounds % 50
            self._merging.do(
                f"UPDATE x_1 SET v=v+1 WHERE id BETWEEN {key} AND {key + 20}",
                f"REPLACE INTO x_1 VALUES ({key + 1000}, 0, 'new')",
                f"DELETE FROM x_2 WHERE id={key + 5000}",
                f"INSERT IGNORE INTO x_2 VALUES ({key + 5001}, {self.rounds}, 'again')",
                "BEGIN",
                f"DELETE FROM x_1 WHERE id={key + 1000}",
                f"INSERT INTO x_2 VALUES ({key + 1000}, 1, 'moved')",
                "COMMIT",
                f"DELETE FROM x_2 WHERE id={key + 1000}",
            )


async def test_rows_that_change_all_the_time_are_no_errors(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("x", X, shards=2)
    validated(merging)
    writer = Writer(merging)
    async with merging.running() as generation, anyio.create_task_group() as group:
        merging.do(*(f"INSERT INTO x_1 VALUES ({n}, 0, '')" for n in range(80)))
        group.start_soon(anyio.to_thread.run_sync, writer.write)
        try:
            await until(generation, lambda g: g.counts.validation.checked > 500)
        finally:
            writer.ended = True
        await until(generation, settled)
        assert errors(generation) == 0
        assert generation.counts.validation.skipped == 0


async def test_rows_behind_a_lock_are_no_errors_and_are_validated_when_it_is_gone(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", X, shards=2)
    validated(merging)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 'a')", "INSERT INTO x_2 VALUES (2, 1, 'a')")
        await merging.caught_up(generation)
        merging.do(
            "UPDATE x_1 SET v=2 WHERE id=1",
            "ALTER TABLE x_1 ADD c INT",
            "UPDATE x_1 SET v=3 WHERE id=1",
            "UPDATE x_2 SET v=3 WHERE id=2",
        )
        await until(generation, lambda g: bool(g.counts.validation.suspects))
        assert errors(generation) == 0
        merging.do("ALTER TABLE x_2 ADD c INT", "UPDATE x_2 SET c=9 WHERE id=2")
        await until(generation, lambda _: not merging.differences())
        await until(generation, settled)
        assert errors(generation) == 0


async def test_a_table_without_a_key_is_named_and_too_many_keys_are_skipped(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("x", X)
    merging.create("y", "(v INT)")
    validated(merging, "full", {"max-pending-row-count": 10, "validate-interval": "1h"})
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (1)")
        merging.do("INSERT INTO x_1 SELECT seq, seq, '' FROM seq_1_to_25")
        await merging.caught_up(generation)
        await until(generation, lambda g: g.counts.validation.skipped == 25)

"""Rows that validation has found wrong are corrected while the task runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from actors.task.generation import Generation
from replicator.downstream.meta.validation.validation_errors import MOST_CORRECTIONS
from replicator.sandbox.server import DatabaseServer
from tests.integration.validation.test_validation import (
    PATIENCE,
    MergingFrom,
    X,
    listed,
    settled,
    until,
    validated,
)
from tests.support.tasks.merging import Merging

MODES = ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
SPOILED = ("UPDATE x SET v=-1 WHERE id=1", "DELETE FROM x WHERE id=2")


def corrected(merging: Merging, shard_mode: str = "") -> None:
    validated(merging)
    del merging.more["on-unproven-change"]
    merging.more["shard-mode"] = shard_mode
    merging.create("x", X, shards=2)


def count(state: str) -> Callable[[Generation], int]:
    return lambda generation: generation.counts.validation.errors.get(state, 0)


def events(logs: Sequence[Mapping[str, object]], event: str) -> int:
    return sum(entry["event"] == f"validation.{event}" for entry in logs)


@asynccontextmanager
async def written(merging: Merging) -> AsyncIterator[None]:
    """While rows of the shards are written that are not those of the test."""
    ended = False

    def write() -> None:
        number = 0
        while not ended:
            number += 1
            merging.do(f"REPLACE INTO x_2 VALUES ({1000 + number % 50}, {number}, 'w')")

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, write)
        try:
            yield
        finally:
            ended = True


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("mode", MODES)
async def test_wrong_rows_are_made_right_while_shards_are_written(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    corrected(merging, mode)
    # A task without a full copy does not know whether a row of the target alone is wrong.
    merging.mode = "all"
    with capture_logs() as logs:
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.do(*(f"INSERT INTO x_1 VALUES ({n}, {n}, 'a\\tb')" for n in range(1, 6)))
            await merging.caught_up(generation)
            async with written(merging):
                merging.on(merging.target, *SPOILED)
                # Another row has its key again, after the task has applied the deletion.
                merging.do("DELETE FROM x_1 WHERE id=5")
                await merging.caught_up(generation)
                merging.on(merging.target, "INSERT INTO x VALUES (5, 0, 'alone')")
                await until(generation, lambda g: count("corrected")(g) == 3)
            await merging.caught_up(generation)
            await until(generation, settled)
            assert not merging.differences()
            assert count("new")(generation) == 0
            found = await listed(merging, generation, "show-error")
            assert isinstance(found, list)
            assert {(error["key"][0], error["kind"], error["state"]) for error in found} == {
                ("1", "different", "corrected"),
                ("2", "missing", "corrected"),
                ("5", "extra", "corrected"),
            }
    told = [entry for entry in logs if entry["event"] == "validation.corrected"]
    assert sum(entry["rows"] for entry in told) == 3
    assert not [entry for entry in logs if entry["event"] == "validation.not-corrected"]


async def test_nothing_is_corrected_if_the_task_file_says_so(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    corrected(merging)
    merging.more["on-unproven-change"] = "stop"
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 'a')", "INSERT INTO x_1 VALUES (2, 2, 'a')")
        await merging.caught_up(generation)
        merging.on(merging.target, *SPOILED)
        await until(generation, lambda g: count("new")(g) == 2)
        await until(generation, settled)
        assert count("corrected")(generation) == 0
        assert len(merging.differences()) > 0
    # The next start has the option, and corrects the saved errors.
    del merging.more["on-unproven-change"]
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await until(generation, lambda g: count("corrected")(g) == 2)
        assert not merging.differences()


async def test_a_row_that_a_trigger_changes_stays_an_error(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    corrected(merging)
    with capture_logs() as logs:
        async with merging.running() as generation:
            merging.on(
                merging.target,
                "CREATE TRIGGER bad BEFORE INSERT ON x FOR EACH ROW SET NEW.v=7",
                "CREATE TRIGGER worse BEFORE UPDATE ON x FOR EACH ROW SET NEW.v=7",
            )
            merging.do("INSERT INTO x_1 VALUES (1, 1, 'a')")
            await until(
                generation,
                lambda _: any(entry["event"] == "validation.not-corrected" for entry in logs),
            )
            assert (count("new")(generation), count("corrected")(generation)) == (1, 0)
            (told,) = [e for e in logs if e["event"] == "validation.not-corrected"]
            assert "triggers" in told["reason"]
            merging.on(merging.target, "DROP TRIGGER bad", "DROP TRIGGER worse")


async def test_a_row_that_somebody_changes_again_and_again_stays_an_error(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    corrected(merging)
    with capture_logs() as logs:
        async with merging.running() as generation:
            merging.do("INSERT INTO x_1 VALUES (1, 1, '')")
            for times in range(MOST_CORRECTIONS + 1):
                merging.do("UPDATE x_1 SET s=CONCAT(s, 'b') WHERE id=1")
                await merging.caught_up(generation)
                merging.on(merging.target, "UPDATE x SET v=-1 WHERE id=1")
                event = "corrected" if times < MOST_CORRECTIONS else "error"
                with anyio.fail_after(PATIENCE):
                    while events(logs, event) <= times:
                        await anyio.sleep(0.05)
            await until(generation, settled)
            assert events(logs, "corrected") == MOST_CORRECTIONS
            assert count("new")(generation) == 1
            assert merging.target.execute(f"SELECT v FROM {merging.database}.x") == ((-1,),)
            # The operator has ended it.
            await listed(merging, generation, "resolve-error")
            merging.do("UPDATE x_1 SET s=CONCAT(s, 'b') WHERE id=1")
            await merging.caught_up(generation)
            merging.on(merging.target, "UPDATE x SET v=-1 WHERE id=1")
            await until(generation, lambda g: count("corrected")(g) == 1)
            assert not merging.differences()

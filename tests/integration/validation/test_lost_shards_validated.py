"""Rows that moved into shards that are gone, or can't be read, are never called errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext

from actors.task.generation import Generation
from actors.validating import validator
from actors.validating.operator_answers import validation_status
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.row_owners import Owners
from tests.support.tasks.running import copied, settles


@pytest.fixture
def owners(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Owners]:
    monkeypatch.setattr(validator, "PLAN_SECONDS", 1.0)
    made = Owners(database_name, mariadb_source, mariadb_target, spark, tmp_path)
    made.more["validators"] = {
        "quick": {
            "mode": "full",
            "validate-interval": "500ms",
            "check-interval": "200ms",
            "row-error-delay": "500ms",
        }
    }
    made.instance["validator-config-name"] = "quick"
    yield made
    made.clean()


async def until(generation: Generation, done: Callable[[Generation], bool]) -> None:
    with anyio.fail_after(60):
        while not done(generation):
            await anyio.sleep(0.05)


def settled(generation: Generation) -> bool:
    backlog = generation.counts.validation
    return not backlog.waiting_count and not backlog.suspects and backlog.checked > 0


def errors(generation: Generation) -> int:
    return generation.counts.validation.errors.get("new", 0)


def move(owners: Owners, key: int, old: int, new: int) -> None:
    owners.source.execute(
        "BEGIN",
        f"DELETE FROM {owners.db}_{old}.t WHERE id={key}",
        f"INSERT INTO {owners.db}_{new}.t VALUES ({key},7)",
        "COMMIT",
    )


@pytest.mark.parametrize("again", [False, True], ids=["gone", "created again"])
async def test_a_row_that_moved_into_a_shard_that_was_dropped_is_no_error(
    owners: Owners, again: bool
) -> None:
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11])
        owners.insert(1, "(3,3)")
        await until(generation, settled)
        move(owners, 1, 1, 2)
        owners.drop(2)
        if again:
            owners.schema(2, "(12,1)")
        owners.insert(1, "(4,4)")
        await settles(lambda: 4 in owners.rows(), True)
        checked = generation.counts.validation.checked
        await until(generation, lambda g: g.counts.validation.checked > checked)
        await until(generation, settled)
        assert errors(generation) == 0
        # The rows of a shard that exists are still validated.
        owners.insert(1, "(6,6)")
        await settles(lambda: 6 in owners.rows(), True)
        owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=6")
        await until(generation, lambda g: errors(g) == 1)


@pytest.mark.parametrize(
    "way",
    ["never granted", "revoked", pytest.param("other privilege", marks=pytest.mark.slow)],
)
async def test_keys_seen_while_a_shard_is_unreadable_are_validated_once_it_is_readable(
    owners: Owners, way: str
) -> None:
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11])
        owners.insert(1, "(3,3)")
        await until(generation, settled)
        if way == "never granted":
            owners.schema(3, granted=False)
        else:
            owners.schema(3)
            owners.insert(3, "(5,5)")
            await until(generation, lambda g: g.counts.validation.checked > 1 and settled(g))
            owners.revoke(3)
            if way == "other privilege":
                owners.grant(3, "INSERT")
        move(owners, 1, 1, 3)
        owners.insert(1, "(4,4)", "(6,6)")
        await settles(lambda: {4, 6} <= set(owners.rows()), True)
        await until(generation, lambda g: bool(g.counts.validation.parked))
        assert errors(generation) == 0
        assert generation.counts.validation.skipped == 0
        status = validation_status(generation.counts.validation)
        assert status is not None
        [left_out] = status.left_out
        assert "GRANT SELECT ON" in left_out
        assert "keys wait" in left_out
        assert status.waiting
        owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=4")
    # What waits survives the end of the process.
    async with owners.running() as generation:
        await until(generation, lambda g: bool(g.counts.validation.parked))
        owners.grant(3)
        await until(generation, lambda g: errors(g) == 1)
        await until(generation, settled)
        assert errors(generation) == 1
        assert not generation.counts.validation.left_out
        assert generation.counts.validation.skipped == 0

"""Rows that are in two shards when the full copy has been caught up with, and go from one later."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from actors.errors.faults import TransientError
from actors.reconciling import key_reconciler
from actors.task.generation import Generation
from replicator.pipeline.compare import key_survey
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copied_some, slow_copy
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of, settles

MakeMerging = Callable[..., Merging]
Logged = Sequence[MutableMapping[str, Any]]


@pytest.fixture
def merging(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, mysql_source: DatabaseServer
) -> Merging:
    """A slow full copy of two sources into one target."""
    return slow_copy(merging_from(mariadb_source, mysql_source), 200)


async def told_as_shared(logged: Logged, keys: int) -> None:
    """Wait until the log tells of so many keys; some seconds, should it never do so."""
    with anyio.move_on_after(30):
        while not any(r["event"] == "moved.shared" and r["keys"] == keys for r in logged):
            await anyio.sleep(LOOK_SECONDS)


async def equal(merging: Merging, generation: Generation) -> None:
    await merging.caught_up(generation)
    with anyio.move_on_after(PATIENCE):
        while merging.differences():
            await anyio.sleep(0.2)
    await merging.check(generation)


def numbers(merging: Merging, server: DatabaseServer, first: int, last: int, n: int) -> None:
    values = ",".join(f"({i},{n},'t{i}')" for i in range(first, last + 1))
    merging.on(server, f"INSERT INTO x_1 VALUES {values}")


@pytest.mark.slow
@pytest.mark.parametrize("many", [1_000_000, 5])
async def test_rows_that_leave_their_old_shard_late_stay(
    merging: Merging, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 to 20 come into the new shard behind the place of reading, 2000 to 2009 before it, 40 to 49
    are there when the copy begins; 21 to 24 move the other way than they came."""
    monkeypatch.setattr(key_reconciler, "MANY_KEYS", many)
    monkeypatch.setattr(key_survey, "MANY_KEYS", many)
    merging.create("x", "(id INT PRIMARY KEY, n INT, s VARCHAR(9))", with_target=False)
    old, new = merging.sources.values()
    numbers(merging, old, 1, 150, 1)
    numbers(merging, old, 2000, 2009, 1)
    numbers(merging, new, 30, 30, 2)
    numbers(merging, new, 40, 49, 2)
    numbers(merging, new, 1000, 1150, 2)
    with capture_logs() as logged:
        async with merging.running() as generation:
            await copied_some(generation, 4)
            numbers(merging, new, 1, 20, 3)
            numbers(merging, new, 21, 24, 3)
            numbers(merging, new, 2000, 2009, 3)
            merging.on(new, "DELETE FROM x_1 WHERE id = 30")
            await merging.copied(generation)
            await merging.caught_up(generation)
            await told_as_shared(logged, 44)
            merging.on(new, "UPDATE x_1 SET n = 4 WHERE id IN (2, 2001, 41)")
            merging.on(old, "UPDATE x_1 SET n = 5 WHERE id IN (3, 2002, 42)")
            merging.on(new, "DELETE FROM x_1 WHERE id BETWEEN 21 AND 24")
            merging.on(
                old,
                "DELETE FROM x_1 WHERE id BETWEEN 1 AND 10",
                "UPDATE x_1 SET id = id + 5000 WHERE id BETWEEN 11 AND 20",
                "DELETE FROM x_1 WHERE id BETWEEN 40 AND 49",
                "DELETE FROM x_1 WHERE id BETWEEN 2000 AND 2009",
            )
            await equal(merging, generation)
    assert (many == 5) == any(entry["event"] == "moved.too-many" for entry in logged)


def share_a_key(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, n INT NOT NULL)", with_target=False)
    for n, server in enumerate(merging.sources.values()):
        merging.on(server, f"INSERT INTO x_1 VALUES (1, {n}), ({n + 2}, 1)")


async def key_changed(merging: Merging) -> None:
    """Run the task, and change the key of the target after the copy."""
    async with merging.running() as generation:
        await merging.copied(generation)
        for server in merging.sources.values():
            merging.on(server, "ALTER TABLE x_1 DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)")
        await anyio.sleep_forever()


@pytest.mark.slow
async def test_a_target_whose_key_changes_while_keys_are_shared_is_reconciled(
    merging: Merging,
) -> None:
    merging.more |= {"copy": {}}
    share_a_key(merging)
    with anyio.fail_after(PATIENCE), pytest.raises(ExceptionGroup) as ended:
        await key_changed(merging)
    assert ended.group_contains(TransientError, match="all its rows are reconciled")
    async with merging.running():
        await settles(merging.differences, {})


@pytest.mark.slow
@pytest.mark.remedy("rows.moved-unknown", "copy anew")
async def test_a_target_whose_key_changes_while_keys_are_shared_is_copied_anew(
    merging: Merging,
) -> None:
    merging.more |= {"copy": {}, "on-unproven-change": "stop"}
    share_a_key(merging)
    with anyio.fail_after(PATIENCE):
        fault = await fault_of(key_changed(merging))
    assert fault.event == "rows.moved-unknown"
    await copy_all_anew(merging, "x")


@pytest.mark.slow
async def test_keys_that_only_the_server_knows_to_be_equal_are_shared(merging: Merging) -> None:
    """They differ in case, in digits behind the point, and in the names of their columns' case."""
    columns = (
        "(`{k} ä` VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, d DECIMAL(6,2),"
        " t DATETIME, n INT, s VARCHAR(9), PRIMARY KEY (d, `{k} ä`, t))"
    )
    merging.create("x", columns.format(k="K"), with_target=False)
    merging.more |= {"copy": {}, "shard-mode": "pessimistic"}
    old, new = merging.sources.values()
    day = "'2024-02-29'"
    for server, name in ((old, "abc\\t{}"), (new, "ABC\\t{}")):
        keys = (f"('{name.format(i)}', {i}.50, {day}, {i}, NULL)" for i in range(6))
        merging.on(server, f"INSERT INTO x_1 VALUES {','.join(keys)}")
    with capture_logs() as logged:
        async with merging.running() as generation:
            await merging.copied(generation)
            await told_as_shared(logged, 6)
            merging.on(old, "DELETE FROM x_1 WHERE n < 3")
            merging.on(new, "UPDATE x_1 SET d = d + 100 WHERE n > 3", "DELETE FROM x_1 WHERE n = 3")
            await equal(merging, generation)

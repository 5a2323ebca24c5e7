"""Rows of two shards with other keys, and the same value of a further unique key, during a copy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.reconciling import key_reconciler
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

KEYS = "(id INT, k VARCHAR(9), v VARCHAR(20), PRIMARY KEY (id, k), UNIQUE u (v{length}))"
ENDS = {
    "another value": "UPDATE x_1 SET v = 'other' WHERE id = 8",
    "deleted": "DELETE FROM x_1 WHERE id = 8",
    "the other one": "DELETE FROM x_2 WHERE id = 9",
}


@pytest.fixture
async def merging(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Merging:
    monkeypatch.setattr(key_reconciler, "GRACE_SECONDS", 0.1)
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    return merging


async def copied_in_part(merging: Merging, length: str = "") -> None:
    """The shard ``x_1`` is copied, and ``x_2`` waits for a row that both have."""
    merging.create("x", KEYS.format(length=length), shards=2, with_target=False)
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'a', 'a'), (5, 'b', 'one')",
        "INSERT INTO x_2 VALUES (2, 'a', 'b'), (5, 'b', 'two'), (9, 'c', 'M\\t8 x')",
    )
    found = await merging.fault()
    assert found.event == "copy.duplicate"
    assert "x_2 has a row" in found.message
    merging.do("DELETE FROM x_2 WHERE id = 5")


@pytest.mark.remedy("rows.duplicate", "resume")
@pytest.mark.parametrize(
    ("end", "length"),
    [
        ("another value", ""),
        pytest.param("deleted", "(3)", marks=pytest.mark.slow),
        pytest.param("the other one", "", marks=pytest.mark.slow),
    ],
)
async def test_a_row_that_another_shard_s_row_pushes_out_is_a_fault(
    merging: Merging, end: str, length: str
) -> None:
    await copied_in_part(merging, length)
    merging.do("INSERT INTO x_1 VALUES (8, 'd', 'm\t8 x')")
    found = await merging.fault()
    assert found.event == "rows.duplicate"
    assert "two shards" in found.message
    merging.do(ENDS[end])
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
        await settles(merging.differences, {})


async def test_a_value_that_moves_to_another_shard_is_no_fault(merging: Merging) -> None:
    await copied_in_part(merging)
    merging.do(
        "INSERT INTO x_1 VALUES (8, 'd', 'm\t8 x')",
        "FLUSH BINARY LOGS",
        "UPDATE x_1 SET v = 'moved on' WHERE id = 8",
    )
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
        await settles(merging.differences, {})

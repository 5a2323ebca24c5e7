"""Changes of a shard between the last reading of a row and its correction."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

import anyio.from_thread
import pytest

from actors.comparing import differing_rows
from replicator.pipeline.compare.repair_now import Repaired, repair_now
from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_numbered_rows import MergingFrom
from tests.integration.reconciling.test_reconcile import asked, until_reconciled
from tests.support.tasks.running import settles

Change = Callable[[], Coroutine[None, None, None]]


@pytest.fixture
def around_a_correction(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change, Change], None]:
    """Makes changes before and after the first correction."""

    def prepare(before: Change, after: Change) -> None:
        waiting = [before]

        def corrected(*arguments: object) -> Repaired:
            if not waiting:
                return repair_now(*arguments)  # type: ignore[arg-type]
            anyio.from_thread.run(waiting.pop())
            try:
                return repair_now(*arguments)  # type: ignore[arg-type]
            finally:
                anyio.from_thread.run(after)

        monkeypatch.setattr(differing_rows, "repair_now", corrected)

    return prepare


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_columns_that_exchange_their_names(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    around_a_correction: Callable[[Change, Change], None],
    mode: str,
) -> None:
    """A corrected row must not have the values of the new columns before the target has these."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id INT PRIMARY KEY, a INT, b INT)", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 1, 2), (2, 3, 4)", "INSERT INTO x_2 VALUES (3, 5, 6)")
    new = ["id", "b", "a"]
    swap = "ALTER TABLE x_{} CHANGE a b INT, CHANGE b a INT"
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(merging.target, "UPDATE x SET a = 9 WHERE id = 1")

        async def first() -> None:
            merging.do(swap.format(1))
            await merging.caught_up(generation)

        async def second() -> None:
            merging.do(swap.format(2))
            await settles(lambda: [row[0] for row in merging.on(merging.target, "DESC x")], new)

        around_a_correction(first, second)
        await asked(merging, generation)
        await until_reconciled(merging, generation)
        await merging.caught_up(generation)
        assert not merging.differences()

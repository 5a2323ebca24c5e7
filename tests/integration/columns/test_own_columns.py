"""Columns that only the target has keep what the target made for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

COLUMNS = "(id INT PRIMARY KEY, a VARCHAR(9), u INT"
OWN = {
    "literal": "own INT NOT NULL DEFAULT 7",
    "nothing": "own INT",
    "moment": "own DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)",
    "indexed": "own VARCHAR(9) DEFAULT 'x', KEY (own)",
    "label": "own ENUM('p', 'q') NOT NULL",
    "number": "own BIGINT NOT NULL AUTO_INCREMENT, UNIQUE (own)",
    "computed": "own INT AS (id + 1) STORED",
}
KEPT = OWN.keys() - {"computed"}


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("mode", ["incremental", "all"])
async def test_columns_of_the_targets_own(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb11_source)
    merging.mode = mode
    rows = [f"INSERT INTO {name}_1 VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)" for name in OWN]
    for name, own in OWN.items():
        merging.create(name, f"{COLUMNS})", target=f"{COLUMNS}, {own})")
    if mode == "all":
        merging.do(*rows)
    shown = dict.fromkeys(OWN, "id, a, u")
    async with merging.running() as generation:
        if mode == "all":
            await merging.copied(generation)
        else:
            merging.do(*rows)
        await merging.check(generation, shown)
        for name in KEPT:
            values = {"moment": "'2001-02-03 04:05:06.7'", "label": "'q'"}
            merging.on(merging.target, f"UPDATE {name} SET own = {values.get(name, 'id + 100')}")
        before = {name: nondeterministic_defaults(merging, name) for name in OWN}
        for name in OWN:
            merging.do(
                f"UPDATE {name}_1 SET a = 'new' WHERE id < 3",
                f"UPDATE {name}_1 SET a = NULL, u = 9 WHERE id = 1",
                f"REPLACE INTO {name}_1 VALUES (3, 'r', 3)",
                f"INSERT INTO {name}_1 VALUES (4, 'd', 4)",
            )
        await merging.check(generation, shown)
    after = {name: nondeterministic_defaults(merging, name) for name in OWN}
    assert {name: values[:3] for name, values in after.items()} == before


def nondeterministic_defaults(merging: Merging, table: str) -> tuple[tuple[object, ...], ...]:
    return merging.on(merging.target, f"SELECT id, own FROM {table} ORDER BY id")

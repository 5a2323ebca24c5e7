"""The plain index in place of a key that only some members have."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.alters import STAND_IN, stand_in_index
from replicator.sharding.optimistic.shapes import join, shape_of
from tests.unit.replicator.sharding.optimistic.test_joined_table import table

ID, C = "`id` int NOT NULL", "`c` varchar(9) NOT NULL"
KEYED, LOST = table(ID, C), table(ID, C, primary="")
INDEX = f"KEY `{STAND_IN}` (`id`)"
INDEXED = table(ID, C, INDEX, primary="")
TEXT = table("`id` text NOT NULL", C, primary="")
ADDED, DROPPED = [f"ADD INDEX `{STAND_IN}` (`id`)"], [f"DROP INDEX `{STAND_IN}`"]

CASES: dict[str, tuple[Sequence[Table], Sequence[Table], Table, list[str]]] = {
    "the first member loses it": ([KEYED, KEYED], [LOST, KEYED], KEYED, ADDED),
    "another change meanwhile": ([LOST, KEYED], [table(ID, primary=""), KEYED], INDEXED, []),
    "the last one loses it": ([LOST, KEYED], [LOST, LOST], INDEXED, DROPPED),
    "it has it again": ([LOST, KEYED], [KEYED, KEYED], INDEXED, DROPPED),
    "the only one loses it": ([KEYED], [LOST], KEYED, []),
    "there never was one": ([LOST, LOST], [LOST, table(ID, primary="")], LOST, []),
    "another key stays": (
        [table(ID, C, "UNIQUE KEY `u` (`c`)")] * 2,
        [table(ID, C, "UNIQUE KEY `u` (`c`)", primary=""), table(ID, C, "UNIQUE KEY `u` (`c`)")],
        table(ID, C, "UNIQUE KEY `u` (`c`)"),
        [],
    ),
    "two columns, in the order of the target": (
        [table(ID, C, primary="c,id")] * 2,
        [table(ID, C, primary=""), table(ID, C, primary="c,id")],
        table(ID, C, primary="c,id"),
        [f"ADD INDEX `{STAND_IN}` (`id`, `c`)"],
    ),
    "a column that no index has as a whole": ([LOST, KEYED], [TEXT, TEXT], INDEXED, DROPPED),
    "the target has refused the key": ([KEYED, KEYED], [KEYED, KEYED], INDEXED, []),
    "a wider column": (
        [LOST, KEYED],
        [table("`id` bigint NOT NULL", C, primary=""), KEYED],
        INDEXED,
        [],
    ),
}
"""The members before and after, the target, and what it gets."""


@pytest.mark.parametrize("case", CASES)
def test_the_index_is_there_while_some_members_have_a_key(case: str) -> None:
    before, after, target, wanted = CASES[case]
    shapes = [join([shape_of(member) for member in members]) for members in (before, after)]
    assert stand_in_index(shapes[0], shapes[1], target, after) == wanted

"""The parts on which all members agree, and that the target lacks."""

from __future__ import annotations

import pytest

from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.agreement import PartKind, agreed_parts
from replicator.sharding.optimistic.agreement_alters import differing_parts


def text_column(charset: str, collation: str) -> Table:
    column = Column("c", "varchar(9)", charset, collation=collation)
    sql = f"CREATE TABLE `t` (\n  `c` varchar(9) COLLATE {collation}\n) ENGINE=InnoDB"
    return Table("d", "t", (column,), (), sql)


@pytest.mark.parametrize(
    ("there", "own", "differs"),
    [
        (("utf8", "utf8_bin"), ("utf8mb3", "utf8mb3_bin"), False),
        (("utf8", "utf8_bin"), ("utf8mb3", "utf8mb3_general_ci"), True),
        (("utf8mb4", "utf8mb4_bin"), ("utf8mb4", "utf8mb4_general_ci"), True),
        (("utf8mb4", "utf8mb4_bin"), ("utf8mb3", "utf8mb3_general_ci"), False),
        (("utf8mb4", "utf8mb4_bin"), ("latin1", "latin1_swedish_ci"), False),
    ],
)
def test_a_collation_only_counts_within_its_charset(
    there: tuple[str, str], own: tuple[str, str], *, differs: bool
) -> None:
    """Rows of shards that have left need the wider charset; no column takes the other collation."""
    wanted = agreed_parts([(text_column(*own), frozenset())])
    found = differing_parts(text_column(*there), wanted)
    assert found == ({(PartKind.COLLATION, "c")} if differs else set())

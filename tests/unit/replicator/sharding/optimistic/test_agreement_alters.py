"""The parts on which all members agree, and that the target lacks."""

from __future__ import annotations

import pytest

from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.agreement import PartKind, agreed_parts
from replicator.sharding.optimistic.agreement_alters import (
    agreement_actions,
    differing_parts,
)


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


def keyed(*names: str) -> Table:
    """A table with unique keys over one column."""
    columns = (
        Column("id", "int", "", "", nullable=False),
        Column("b", "int", "", "", nullable=True),
    )
    keys = tuple(UniqueKey(name, ("b",)) for name in names)
    lines = ["`id` int NOT NULL", "`b` int", *(f"UNIQUE KEY `{name}` (`b`)" for name in names)]
    return Table("d", "t", columns, keys, f"CREATE TABLE `t` (\n  {', '.join(lines)}\n)")


@pytest.mark.parametrize(
    ("there", "own", "action"),
    [
        (("u",), ("v",), "RENAME INDEX `u` TO `v`"),
        (("u", "v"), ("v",), "DROP INDEX `u`"),
        (("u",), ("u", "v"), "ADD UNIQUE KEY `v` (`b`)"),
        (("u",), ("v", "w"), "RENAME INDEX `u` TO `v`, ADD UNIQUE KEY `w` (`b`)"),
        ((), ("u",), None),
    ],
)
def test_the_unique_keys_over_a_column_become_those_of_all_members(
    there: tuple[str, ...], own: tuple[str, ...], action: str | None
) -> None:
    wanted = agreed_parts([(keyed(*own), frozenset())])
    parts = {part for part in wanted if part[0] is PartKind.KEY_NAME}
    found = agreement_actions(keyed(*there), parts, wanted, [keyed(*own)])
    assert [*found.values()] == ([] if action is None else [action])

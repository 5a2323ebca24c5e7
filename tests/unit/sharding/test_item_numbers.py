"""After how many items of another member the statement of a created table comes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from actors.sharding.pessimistic.item_numbers import shown_items
from replicator.schema.structure.structure import Column, Table

WIDTHS = {"int": "int(11)", "bigint": "bigint(20)", "smallint": "smallint(6)"}


def table(kind: str, *, commented: bool = False, null: bool = True) -> Table:
    """A table with a column of a type, as a server shows it."""
    shown = f"{WIDTHS[kind]} {'DEFAULT' if null else 'NOT'} NULL"
    columns = (
        Column("id", "int(11)", "", "", nullable=False),
        Column("v", WIDTHS[kind], "", "", nullable=null),
    )
    options = " COMMENT='x'" if commented else ""
    return Table(
        "s", "t", columns, (), f"CREATE TABLE `t` (`id` int(11) NOT NULL, `v` {shown}){options}"
    )


def run(*tables: Table) -> list[tuple[str, Table, Table]]:
    """Items that lead from each table to the next, called 1, 2, …"""
    pairs = pairwise(tables)
    return [(str(number), *pair) for number, pair in enumerate(pairs, 1)]


PLAIN, NOTED = table("int"), table("int", commented=True)
WIDE = table("bigint")
STEPS = run(PLAIN, WIDE, PLAIN, NOTED, NOTED)


@pytest.mark.parametrize(
    ("text", "own", "shown"),
    [
        ("4", NOTED, 3),
        ("4", PLAIN, 0),
        ("3", PLAIN, 2),
        ("3", NOTED, 2),
        ("2", NOTED, 0),
        ("1", NOTED, 0),
        ("5", NOTED, 0),
    ],
)
def test_a_statement_comes_after_the_items_that_its_table_shows(
    text: str, own: Table, shown: int
) -> None:
    assert shown_items(STEPS, text, own) == shown


@pytest.mark.parametrize(
    "between",
    [
        table("smallint"),
        table("int", null=False),
        Table("s", "t", PLAIN.columns[:1], (), "CREATE TABLE `t` (`id` int(11) NOT NULL)"),
    ],
    ids=["narrower", "without NULL", "without the column"],
)
def test_items_that_may_change_its_values_are_never_shown(between: Table) -> None:
    assert shown_items(run(PLAIN, between, PLAIN, NOTED, NOTED), "4", NOTED) == 0


def test_the_same_statement_may_be_the_first_item() -> None:
    items = [("1", PLAIN, WIDE), ("2", WIDE, PLAIN), ("1", PLAIN, WIDE)]
    assert shown_items(items, "1", PLAIN) == 0

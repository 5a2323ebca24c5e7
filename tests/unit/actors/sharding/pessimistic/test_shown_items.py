"""Whether a shard shows the next items of another one, so that no lock waits for it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from actors.sharding.pessimistic.shown_items import shows, shows_next
from replicator.schema.structure.structure import Column, Table


def table(*parts: str, kind: str = "int(11)", nullable: bool = False) -> Table:
    """A table with keys or CHECKs, as a server shows it."""
    columns = (
        Column("id", "int(11)", "", "", nullable=False),
        Column("v", kind, "", "", nullable=nullable),
    )
    shown = ", ".join(
        ["`id` int(11) NOT NULL", f"`v` {kind}{'' if nullable else ' NOT NULL'}", *parts]
    )
    return Table("s", "t", columns, (), f"CREATE TABLE `t` ({shown})")


def run(*tables: Table) -> list[tuple[str, Table, Table]]:
    """Items that lead from each table to the next."""
    return [(str(number), *pair) for number, pair in enumerate(pairwise(tables), 1)]


PLAIN = table()
KEY, UNIQUE = table("KEY `k` (`v`)"), table("UNIQUE KEY `k` (`v`)")
CHECKED = table("CONSTRAINT `c` CHECK (`v` > 0)")
WIDE = table(kind="bigint(20)")
NULLABLE = table(nullable=True)


@pytest.mark.parametrize(
    ("items", "own", "shown"),
    [
        (run(PLAIN, KEY), KEY, True),
        (run(PLAIN, KEY), PLAIN, False),
        (run(PLAIN, KEY, PLAIN), PLAIN, True),
        (run(PLAIN, CHECKED, PLAIN), PLAIN, True),
        (run(PLAIN, UNIQUE, PLAIN), PLAIN, True),
        (run(KEY, PLAIN, KEY), KEY, True),
        (run(PLAIN, KEY, CHECKED), PLAIN, False),
        (run(PLAIN, KEY, PLAIN, CHECKED), PLAIN, True),
        (run(PLAIN, KEY, PLAIN, CHECKED)[1:], PLAIN, True),
    ],
)
def test_what_some_have_made_and_others_have_undone_is_shown(
    items: list[tuple[str, Table, Table]], own: Table, *, shown: bool
) -> None:
    assert shows_next(items, own) is shown


@pytest.mark.parametrize(("table", "between"), [(UNIQUE, PLAIN), (CHECKED, PLAIN), (PLAIN, WIDE)])
def test_rows_that_the_outcome_refuses_are_waited_for(table: Table, between: Table) -> None:
    assert not shows_next(run(table, between, table), table)


@pytest.mark.parametrize(("present", "shown"), [(PLAIN, True), (WIDE, False), (None, False)])
def test_several_types_are_shown_only_if_the_target_lacks_the_first_item(
    present: Table | None, *, shown: bool
) -> None:
    assert shows(run(PLAIN, WIDE, PLAIN), PLAIN, present) is shown


def test_rows_with_null_are_waited_for() -> None:
    assert shows(run(PLAIN, NULLABLE, PLAIN), PLAIN, PLAIN)
    assert not shows(run(NULLABLE, PLAIN, NULLABLE), NULLABLE, NULLABLE)

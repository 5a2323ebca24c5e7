"""Whether a table shows a change of another one that concerns no row."""

from __future__ import annotations

import pytest

from replicator.schema.effects.shown_changes import shows_change
from replicator.schema.structure.structure import Column, Table

PLAIN = "`id` int(11) NOT NULL, `v` int(11) DEFAULT 1"
KEY = f"{PLAIN}, KEY `k` (`v`)"
CHECKED = f"{PLAIN}, CONSTRAINT `a` CHECK (`v` >= 0)"
TWICE = f"{CHECKED}, CONSTRAINT `b` CHECK (`v` >= 0)"
DEFAULT = "`id` int(11) NOT NULL, `v` int(11) DEFAULT 2"


def table(definition: str, options: str = "", kind: str = "int(11)") -> Table:
    """A table that a server shows like this."""
    columns = (
        Column("id", "int(11)", "", "", nullable=False),
        Column("v", kind, "", "", nullable=True),
    )
    return Table("s", "t", columns, (), f"CREATE TABLE `t` ({definition}) {options}")


@pytest.mark.parametrize(
    ("before", "after", "own", "shown"),
    [
        (PLAIN, KEY, KEY, True),
        (PLAIN, KEY, PLAIN, False),
        (KEY, PLAIN, PLAIN, True),
        (KEY, PLAIN, KEY, False),
        (PLAIN, DEFAULT, DEFAULT, True),
        (PLAIN, DEFAULT, PLAIN, False),
        (PLAIN, KEY, f"{PLAIN}, KEY `k` (`id`)", False),
        (PLAIN, KEY, f"{DEFAULT}, KEY `k` (`v`)", True),
        (PLAIN, PLAIN, PLAIN, False),
        (CHECKED, TWICE, CHECKED, False),
        (CHECKED, TWICE, TWICE, True),
        (TWICE, CHECKED, TWICE, False),
        (TWICE, CHECKED, CHECKED, True),
    ],
)
def test_a_table_shows_the_result_of_a_change(
    before: str, after: str, own: str, *, shown: bool
) -> None:
    assert shows_change(table(before), table(after), table(own)) is shown


def test_a_comment_is_shown() -> None:
    commented = table(PLAIN, "COMMENT='x'")
    assert shows_change(table(PLAIN), commented, commented)
    assert not shows_change(table(PLAIN), commented, table(PLAIN))


def test_a_change_of_rows_is_never_shown() -> None:
    wider = table(PLAIN.replace("`v` int(11)", "`v` bigint(20)"), kind="bigint(20)")
    assert not shows_change(table(PLAIN), wider, wider)

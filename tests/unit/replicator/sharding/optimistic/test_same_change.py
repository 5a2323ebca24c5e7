"""Which open statements of two shards are one change, in other words."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.normalise import normalise
from replicator.mysql.session_context.statement_context import NO_CONTEXT
from replicator.schema.effects.carried_change import MemberChange
from replicator.sharding.optimistic.same_change import renaming_form, without_positions
from replicator.sharding.optimistic.shard_states import ConflictKind, OpenStatement
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Definition, table

B: Definition = ("b", "int", "")


def opened(action: str, *after: Definition, before: tuple[Definition, ...] = (B,)) -> OpenStatement:
    """An ALTER TABLE with this action, of a shard with these columns before and after."""
    statement = classify(f"ALTER TABLE t {action}", default_schema="s")
    form = renaming_form(statement, MemberChange(table(before), table(after)), NO_CONTEXT)
    text = normalise(without_positions(statement))
    return OpenStatement(Place(1, 0), text, "", ConflictKind.NAME, "", table(after), form=form)


C: Definition = ("c", "int", "")
SAME = {
    "positions": (
        opened("CHANGE b c BIGINT FIRST", ("c", "bigint", "")),
        opened("change `b` c bigint AFTER `id`", ("c", "bigint", "")),
    ),
    "positions, from other types": (
        opened("CHANGE b c BIGINT FIRST, ADD d INT AFTER c", ("c", "bigint", ""), ("d", "int", "")),
        opened(
            "CHANGE b c BIGINT, ADD d INT",
            ("c", "bigint", ""),
            ("d", "int", ""),
            before=(("b", "smallint", ""),),
        ),
    ),
    "defaults": (
        opened("CHANGE b c INT DEFAULT 1", ("c", "int", " DEFAULT 1")),
        opened("CHANGE COLUMN b c INT DEFAULT 2 COMMENT 'x'", ("c", "int", " DEFAULT 2")),
    ),
    "words": (
        opened("RENAME COLUMN b TO c, ADD KEY k (c)", C),
        opened("CHANGE b c INT(11) NULL AFTER id, ADD KEY k (c)", ("c", "int(11)", "")),
    ),
}
OTHER = {
    "names": (opened("CHANGE b c INT", C), opened("CHANGE b d INT", ("d", "int", ""))),
    "types": (
        opened("CHANGE b c INT", C),
        opened("CHANGE b c BIGINT", ("c", "bigint", "")),
    ),
    "former types": (
        opened("RENAME COLUMN b TO c", C),
        opened("CHANGE b c INT", C, before=(("b", "smallint", ""),)),
    ),
    "NULL": (
        opened("CHANGE b c INT", C),
        opened("CHANGE b c INT NOT NULL", ("c", "int", " NOT NULL")),
    ),
    "more than a name": (
        opened("CHANGE b c INT, ADD d INT", C, ("d", "int", "")),
        opened("CHANGE b c INT", C),
    ),
    "defaults of new columns": (
        opened("ADD c INT DEFAULT 1", B, ("c", "int", " DEFAULT 1")),
        opened("ADD c INT DEFAULT 2", B, ("c", "int", " DEFAULT 2")),
    ),
    "exchanged": (
        opened("CHANGE b c INT, CHANGE c b INT", C, B, before=(B, C)),
        opened("CHANGE b b INT, CHANGE c c INT", C, B, before=(B, C)),
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_no_row_can_tell_them_apart(case: str) -> None:
    one, other = SAME[case]
    assert one.same(other.text, other.form)
    assert other.same(one.text, one.form)


@pytest.mark.parametrize("case", OTHER)
def test_they_are_two_changes(case: str) -> None:
    one, other = OTHER[case]
    assert not one.same(other.text, other.form)
    assert not other.same(one.text, one.form)

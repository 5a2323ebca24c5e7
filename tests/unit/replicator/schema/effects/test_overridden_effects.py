from __future__ import annotations

from typing import Any, cast

import pytest

from actors.errors.faults import DdlEvent
from actors.reading.ddl_overrides import DdlOverrides
from actors.task.operator.operator_commands import give_override, remedies_of
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.meta.ddl_overrides import DdlOverride
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import DdlError, Effect, EffectKind
from replicator.schema.effects.given_columns import reads_alike
from replicator.schema.effects.overridden_effects import (
    OverrideAction,
    overridden_effects,
    overridden_exchange,
)

REFUSED = "alter table t1 add unique key u (v)"
NOT_CARRIED = "alter table t1 rename to t9, add z int"


def route(name: TableName) -> TableName | None:
    if name.schema != "s":
        return None
    return TableName("d", name.table[:1] if name.table else "")


def overridden(action: OverrideAction, sql: str, *given: str) -> tuple[tuple[Effect, ...], ...]:
    texts = [classify(text, default_schema="s") for text in given]
    return overridden_effects(action, classify(sql, default_schema="s"), texts, route, [])


def test_a_skipped_change_keeps_its_effect_on_the_shard() -> None:
    [[effect]] = overridden(OverrideAction.SKIP, REFUSED)
    assert (effect.kind, effect.instead, effect.skipped) == (EffectKind.ALTER, (), True)
    assert effect.sql.endswith("add unique key u (v)")


def test_a_change_is_replaced_on_the_target_only() -> None:
    [[effect]] = overridden(OverrideAction.REPLACE, REFUSED, "create index u on t1 (v)")
    assert effect.instead == ("create index u on `d`.`t` (v)",)
    assert effect.statement.sql == REFUSED


def test_statements_before_a_change() -> None:
    [[effect]] = overridden(OverrideAction.INJECT, REFUSED, "alter table t1 drop key u")
    assert effect.instead == ("alter table `d`.`t` drop key u", effect.sql)


@pytest.mark.parametrize("given", ["UPDATE t1 SET a = 1", "CALL p()", "CREATE TABLE t1 SELECT 1"])
@pytest.mark.parametrize(
    "sql", [REFUSED, NOT_CARRIED, "UPDATE t1 SET v = 2", "CREATE TABLE t1 LIKE t2"]
)
def test_a_given_statement_that_changes_rows_is_not_taken_for_one_of_a_binlog(
    sql: str, given: str
) -> None:
    with pytest.raises(DdlError, match=r"^the given statement changes rows") as caught:
        overridden(OverrideAction.REPLACE, sql, given)
    assert "binlog" not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CALL p()", "CALL p(). If the target needs this one, execute it there by hand"),
        ("ALTER TABLE t1 …", "write what … stands for"),
    ],
)
async def test_given_statements_change_structures_and_are_whole(statement: str, why: str) -> None:
    task = Task.model_construct(mysql_instances=[])
    arguments = {"action": "replace", "position": "bin.000001:4", "statements": [statement]}
    reply = await give_override(task, cast(Any, None), (), lambda: None, arguments)
    assert why in reply.error


def exchanged(action: OverrideAction, *given: str, members: tuple[str, ...] = ("t1",)) -> list[Any]:
    """What is executed for each of two statements that an exchange stands for."""
    replayed = ["ALTER TABLE t1 ADD c INT", "CREATE INDEX i ON t1 (c)"]
    own, texts = ([classify(sql, default_schema="s") for sql in some] for some in (replayed, given))
    names = [TableName("s", name) for name in members]
    return [
        [(effect.statement.sql, effect.instead) for effect in effects]
        for effects in overridden_exchange(action, own, texts, route, names)
    ]


def test_an_exchange_stays_to_its_shard_what_its_ghost_went_through() -> None:
    add, index = "ALTER TABLE t1 ADD c INT", "CREATE INDEX i ON t1 (c)"
    assert exchanged(OverrideAction.SKIP) == [[(add, ())], [(index, ())]]
    [[(first, instead)], second] = exchanged(OverrideAction.REPLACE, "ALTER TABLE t1 ADD d INT")
    assert (first, second) == (add, [(index, ())])
    assert len(instead) == 1
    assert "ADD d INT" in instead[0]
    [[(first, before)], second] = exchanged(OverrideAction.INJECT, "ALTER TABLE t1 ADD d INT")
    assert (first, second) == (add, [(index, None)])
    assert ["ADD d INT" in before[0], "ADD c INT" in before[1]] == [True, True]
    assert exchanged(OverrideAction.SKIP, members=()) == []


def test_what_cannot_be_carried_over_is_replaced_step_by_step() -> None:
    assert overridden(OverrideAction.SKIP, NOT_CARRIED) == ()
    first, second = overridden(
        OverrideAction.REPLACE, NOT_CARRIED, "alter table t1 add z int", "rename table t1 to t9"
    )
    assert [effect.kind for effect in first + second] == [EffectKind.ALTER, EffectKind.RENAME]
    assert first[0].instead is None


def test_a_created_table_keeps_its_structure_whatever_is_executed_on_the_target() -> None:
    created = "create table t1 (id int primary key, w int unsigned)"
    add, like = overridden(
        OverrideAction.REPLACE, created, "alter table t1 add w int", "create table u1 (id int)"
    )
    assert [e.created and e.created.sql for e in add + like] == [created, None]


@pytest.mark.parametrize(
    ("action", "sql", "given"),
    [
        (OverrideAction.INJECT, NOT_CARRIED, "alter table t1 add z int"),
        (OverrideAction.INJECT, "rename table t1 to t2", "alter table t1 add z int"),
        (OverrideAction.REPLACE, REFUSED, "drop table t1"),
        (OverrideAction.REPLACE, REFUSED, "alter table u1 add z int"),
        (OverrideAction.REPLACE, REFUSED, "alter table elsewhere.t1 add z int"),
        (OverrideAction.REPLACE, REFUSED, "alter table t1 drop partition p"),
        (OverrideAction.REPLACE, NOT_CARRIED, NOT_CARRIED),
    ],
)
def test_overrides_that_do_not_help(action: OverrideAction, sql: str, given: str) -> None:
    with pytest.raises(DdlError):
        overridden(action, sql, given)


def test_overrides_are_found_by_either_position() -> None:
    group, own = BinlogPosition("bin.000003", 100), BinlogPosition("bin.000003", 142)

    def overrides_at(place: BinlogPosition) -> DdlOverrides:
        override = DdlOverride("a", place.file, place.offset, place.key, OverrideAction.SKIP)
        return DdlOverrides([override])

    def statement(sql: str) -> Statement:
        return Statement("s", sql, group.key, 0, file=own.file, offset=own.offset)

    for place in (group, own):
        assert overrides_at(place).find("a", statement(REFUSED)) is not None
        assert overrides_at(place).find("b", statement(REFUSED)) is None
    # A transaction may hold several of these.
    assert overrides_at(group).find("a", statement("insert into t1 values (1)")) is None
    assert overrides_at(own).find("a", statement("insert into t1 values (1)")) is not None


def test_the_commands_that_a_fault_names() -> None:
    event = DdlEvent(
        "a", BinlogPosition("bin.000003", 142), (OverrideAction.SKIP, OverrideAction.REPLACE)
    )
    skip, replace = remedies_of("my orders", event)
    place = "--source a --binlog-pos bin.000003:142"
    assert f"`replicator binlog skip 'my orders' {place}`" in skip
    assert f"`replicator binlog replace 'my orders' 'STATEMENT' … {place}`" in replace


@pytest.mark.parametrize(
    ("own", "given"),
    [
        ("ADD g INT AS (n + 1) STORED", ["ADD g INT"]),
        ("ADD c INT, ADD FULLTEXT f (c)", ["ADD c INT"]),
        ("ADD c INT, ADD d INT DEFAULT 4", ["ADD c int", "ADD d INT NULL"]),
        ("MODIFY c TEXT CHARACTER SET latin1, ALGORITHM=COPY", ["MODIFY c text CHARSET latin1"]),
        ("PARTITION BY HASH (id)", ["COMMENT 'whole'"]),
    ],
)
def test_the_format_of_rows_is_the_same(own: str, given: list[str]) -> None:
    assert reads_alike(alter(own), map(alter, given))


@pytest.mark.parametrize(
    ("own", "given"),
    [
        ("ADD g INT UNSIGNED AS (n) STORED", ["ADD g INT"]),
        ("ADD c UUID", ["ADD c BINARY(16)"]),
        ("ADD c ENUM('a', 'b')", ["ADD c ENUM('b', 'a')"]),
        ("MODIFY c TEXT CHARACTER SET latin1", ["MODIFY c TEXT"]),
        ("CONVERT TO CHARACTER SET latin1", ["COMMENT 'as it was'"]),
        ("DEFAULT CHARACTER SET latin1", ["COMMENT 'as it was'"]),
        ("ADD c INT AFTER a", ["ADD c INT"]),
        ("MODIFY c TEXT, ADD UNIQUE (c)", ["MODIFY c TEXT"]),
        ("DROP c, ADD d INT", ["ADD d INT"]),
        ("SOMETHING NEW", ["COMMENT 'as it was'"]),
    ],
)
def test_rows_could_be_read_wrong(own: str, given: list[str]) -> None:
    assert not reads_alike(alter(own), map(alter, given))


def alter(changes: str) -> ParsedStatement:
    return classify(f"ALTER TABLE t {changes}", default_schema="s")

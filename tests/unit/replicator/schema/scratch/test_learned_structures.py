"""What is the same to a scratch table, and what of it is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.session_context.statement_context import NO_CONTEXT
from replicator.schema.scratch.learned_structures import (
    LearnedOutcome,
    LearnedStructures,
    Question,
    question,
    timeless,
)
from replicator.schema.structure.structure import Column, Table, UniqueKey

CREATE = "CREATE TABLE `{name}` (\n  `id` int(11) NOT NULL\n) ENGINE=InnoDB{counter} COMMENT='t1'"


def shard(name: str = "t1", *, counter: str = "", learned: bool = False) -> Table:
    return Table(
        "s",
        name,
        (Column("id", "int(11)", nullable=False, learned=learned),),
        (UniqueKey("PRIMARY", ("id",)),),
        CREATE.format(name=name, counter=counter),
    )


def statement(sql: str, schema: str = "s") -> ParsedStatement:
    return classify(sql, default_schema=schema)


ADD = statement("ALTER TABLE t1 ADD c INT")
ASKED = question(shard(), ADD, (), NO_CONTEXT)


def test_shards_that_differ_by_name_and_counter_ask_the_same() -> None:
    other = question(
        shard("t2", counter=" AUTO_INCREMENT=7"),
        statement("ALTER TABLE `r`.t2 ADD c INT"),
        (),
        replace(NO_CONTEXT, microseconds=5),
    )
    assert other == ASKED
    assert hash(other) == hash(ASKED)


@pytest.mark.parametrize(
    "other",
    [
        question(None, ADD, (), NO_CONTEXT),
        question(shard(learned=True), ADD, (), NO_CONTEXT),
        question(replace(shard(), keys=()), ADD, (), NO_CONTEXT),
        question(replace(shard(), create_sql="CREATE TABLE `t1` (`id` int)"), ADD, (), NO_CONTEXT),
        question(shard(), statement("ALTER TABLE t1 ADD C INT"), (), NO_CONTEXT),
        question(shard(), statement("ALTER TABLE t1 ADD c INT COMMENT ''"), (), NO_CONTEXT),
        question(shard(), ADD, (ADD,), NO_CONTEXT),
        question(shard(), ADD, (), replace(NO_CONTEXT, sql_mode=1)),
        question(shard(), ADD, (), replace(NO_CONTEXT, time_zone="+01:00")),
        question(shard(), ADD, (), replace(NO_CONTEXT, connection_collation="utf8mb4_bin")),
    ],
)
def test_anything_else_that_learning_depends_on_is_another_question(other: Question) -> None:
    assert other != ASKED


def test_a_foreign_key_to_the_table_itself_is_not_one_to_another() -> None:
    add = "ALTER TABLE t1 ADD FOREIGN KEY (a) REFERENCES {} (id)"
    own, others = (
        question(shard(), statement(add.format(name)), (), NO_CONTEXT) for name in ("t1", "p")
    )
    assert own != others


def test_a_comment_that_looks_like_a_counter_counts() -> None:
    one, two = (
        replace(shard(), create_sql=f"CREATE TABLE `t1` (`id` int COMMENT 'AUTO_INCREMENT={n}')")
        for n in (1, 2)
    )
    assert question(one, ADD, (), NO_CONTEXT) != question(two, ADD, (), NO_CONTEXT)


@pytest.mark.parametrize(
    ("sql", "lasts"),
    [
        ("ALTER TABLE t ADD c DATETIME DEFAULT NOW(), ADD `next` INT", True),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (7))", True),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (TO_DAYS(NOW())))", False),
        ("ALTER TABLE t PARTITION BY SYSTEM_TIME INTERVAL 1 WEEK PARTITIONS 3", False),
        ("CREATE TABLE t SELECT * FROM o", False),
        ("ALTER TABLE t ADD c INT DEFAULT (NEXT VALUE FOR q)", False),
        ("ALTER TABLE t TABLESPACE x", False),
    ],
)
def test_what_follows_from_the_moment_or_from_elsewhere_is_not_kept(sql: str, lasts: bool) -> None:
    assert timeless(statement(sql)) is lasts


def test_what_was_learned_on_one_server_is_forgotten_on_another() -> None:
    learned = LearnedStructures()
    learned.follow("one")
    learned.note(ASKED, LearnedOutcome(shard(), "", lasting=True))
    learned.follow("one")
    assert learned.outcome(ASKED) == LearnedOutcome(shard(), "", lasting=True)
    learned.follow("another")
    assert learned.outcome(ASKED) is None


def test_what_may_be_otherwise_next_time_is_not_kept() -> None:
    learned = LearnedStructures()
    learned.note(ASKED, LearnedOutcome(None, "lock wait timeout", lasting=False))
    assert learned.outcome(ASKED) is None
    learned.note(ASKED, LearnedOutcome(None, "unknown collation", lasting=True))
    assert learned.outcome(ASKED) is not None


def test_those_that_were_not_asked_for_longest_go_first() -> None:
    learned = LearnedStructures(capacity=2)
    first, second, third = (
        question(shard(), statement(f"ALTER TABLE t1 ADD c{n} INT"), (), NO_CONTEXT)
        for n in range(3)
    )
    for asked in (first, second):
        learned.note(asked, LearnedOutcome(shard(), "", lasting=True))
    learned.outcome(first)
    learned.note(third, LearnedOutcome(shard(), "", lasting=True))
    assert [learned.outcome(asked) is not None for asked in (first, second, third)] == [
        True,
        False,
        True,
    ]

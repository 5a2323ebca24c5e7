"""Whether a table has the keys and constraints that a statement adds."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.schema.effects.added_keys import has_all_added
from replicator.schema.structure.structure import Table

KEY, OTHER = "KEY `a` (`a`)", "KEY `a_2` (`a`)"
PARENT = "CONSTRAINT `t_ibfk_1` FOREIGN KEY (`a`) REFERENCES `parent` (`id`)"
CHECK = "CONSTRAINT `t_chk_1` CHECK ((`a` > 1))"


def table(*items: str) -> Table:
    return Table("m", "t", (), (), f"CREATE TABLE `t` ({', '.join(['`a` int', *items])})")


@pytest.mark.parametrize(
    ("actions", "after", "present"),
    [
        ("ADD INDEX (a)", (), (KEY,)),
        ("ADD KEY (`A` ASC), ALGORITHM=INPLACE", (), (OTHER,)),
        ("ADD INDEX a (a)", (), (KEY,)),
        ("ADD INDEX (a)", (KEY, OTHER), (KEY, OTHER)),
        ("ADD UNIQUE (a)", (), ("UNIQUE KEY `a` (`a`)",)),
        ("ADD FOREIGN KEY (a) REFERENCES parent (id) ON DELETE RESTRICT", (), (PARENT,)),
        ("ADD FOREIGN KEY (a) REFERENCES m.parent (id)", (), (PARENT,)),
        ("ADD CHECK (a > 1), ADD INDEX (a)", (), (CHECK, KEY)),
    ],
)
def test_it_has_all(actions: str, after: tuple[str, ...], present: tuple[str, ...]) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="m")
    assert has_all_added(statement, table(*after), table(*present))


@pytest.mark.parametrize(
    ("actions", "after", "present"),
    [
        ("ADD INDEX (a)", (), ()),
        ("ADD INDEX (a)", (), ("UNIQUE KEY `a` (`a`)",)),
        ("ADD INDEX (a)", (), ("KEY `a` (`a`(3))",)),
        ("ADD INDEX b (a)", (), (KEY,)),
        # A second one of the same columns.
        ("ADD INDEX (a)", (KEY, OTHER), (KEY,)),
        ("ADD FOREIGN KEY (a) REFERENCES parent (id) ON DELETE SET NULL", (), (PARENT,)),
        ("ADD FOREIGN KEY (a) REFERENCES other (id)", (), (PARENT,)),
        ("ADD CHECK (a > 2)", (), (CHECK,)),
        # They do something else, too.
        ("ADD INDEX (a), DROP INDEX b", ("KEY `b` (`a`)",), (KEY,)),
        ("ADD INDEX (a), ADD COLUMN c INT", (), (KEY,)),
        ("ADD PRIMARY KEY (a)", (), ("PRIMARY KEY (`a`)",)),
        ("COMMENT = 'x'", (), ()),
    ],
)
def test_it_lacks_some(actions: str, after: tuple[str, ...], present: tuple[str, ...]) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="m")
    assert not has_all_added(statement, table(*after), table(*present))


def test_the_index_of_a_foreign_key_is_as_good_as_another_of_its_columns() -> None:
    """The server has dropped it where the other one was added."""
    statement = classify("ALTER TABLE t ADD INDEX (a)", default_schema="m")
    assert has_all_added(statement, table(OTHER), table(KEY, PARENT))


@pytest.mark.parametrize(
    ("sql", "there"),
    [
        ("CREATE INDEX a ON t (a)", True),
        ("CREATE INDEX a USING BTREE ON m.t (a) COMMENT 'x'", True),
        ("CREATE INDEX b ON t (a)", False),
        ("CREATE UNIQUE INDEX a ON t (a)", False),
        ("CREATE OR REPLACE INDEX a ON t (a)", False),
        ("DROP INDEX a ON t", False),
    ],
)
def test_an_index_is_created(sql: str, there: bool) -> None:
    statement = classify(sql, default_schema="m")
    assert has_all_added(statement, table(), table(KEY)) == there

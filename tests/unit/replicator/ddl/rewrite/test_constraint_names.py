"""The names of constraints in statements for targets."""

from __future__ import annotations

import pytest

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.table_text import table_definition
from replicator.ddl.rewrite.constraint_names import (
    constraint_edits,
    present_keys,
    renamed_checks,
    without_check_names,
    without_names,
)
from replicator.ddl.rewrite.retarget import splice
from replicator.mysql.names import TableName


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("ALTER TABLE t1 DROP FOREIGN KEY t1_ibfk_2", "ALTER TABLE t1 DROP FOREIGN KEY `t_ibfk_2`"),
        ("ALTER TABLE t1 DROP CONSTRAINT `T1_CHK_1`", "ALTER TABLE t1 DROP CONSTRAINT `t_chk_1`"),
        (
            "CREATE TABLE t1 (p INT, CONSTRAINT t1_ibfk_1 FOREIGN KEY (p) REFERENCES p (id))",
            "CREATE TABLE t1 (p INT, CONSTRAINT `t_ibfk_1` FOREIGN KEY (p) REFERENCES p (id))",
        ),
        (
            "ALTER TABLE t1 ADD CONSTRAINT f FOREIGN KEY t1_ibfk_1 (p) REFERENCES p (id)",
            "ALTER TABLE t1 ADD CONSTRAINT f FOREIGN KEY  (p) REFERENCES p (id)",
        ),
        ("ALTER TABLE t1 ADD CONSTRAINT FOREIGN KEY i (p) REFERENCES p (id)", None),
        ("ALTER TABLE t1 ADD FOREIGN KEY i (p) REFERENCES p (id)", None),
        ("ALTER TABLE t1 DROP FOREIGN KEY t11_ibfk_1", None),
        ("ALTER TABLE t1 ADD c INT COMMENT 't1_ibfk_1'", None),
    ],
)
def test_a_constraint_gets_its_name_on_the_target(statement: str, wanted: str | None) -> None:
    edits = constraint_edits(classify(statement, default_schema="s"), TableName("m", "t"))
    assert splice(statement, edits) == (wanted or statement)


OWN = ("t1_ibfk_1:p", "f:q", "g:q")


def keys(*pairs: str) -> tuple[ForeignKeyDefinition, ...]:
    """Foreign keys, each by its name and its column."""
    texts = (
        f"CONSTRAINT `{name}` FOREIGN KEY (`{column}`) REFERENCES `p` (`id`)"
        for name, column in (pair.split(":") for pair in pairs)
    )
    columns = ("`p` int(11)", "`q` int(11)")
    return table_definition(f"CREATE TABLE `t` ({', '.join([*columns, *texts])})").foreign_keys


@pytest.mark.parametrize(
    ("actions", "there", "wanted"),
    [
        ("DROP FOREIGN KEY t_ibfk_1", ("t_ibfk_1:p",), "DROP FOREIGN KEY t_ibfk_1"),
        ("DROP FOREIGN KEY t_ibfk_1", ("fk_3:p",), "DROP FOREIGN KEY `fk_3`"),
        ("DROP FOREIGN KEY t_ibfk_1, ADD c INT", ("f:q",), "ADD c INT"),
        (
            "ADD c INT, DROP CONSTRAINT IF EXISTS f, DROP FOREIGN KEY t_ibfk_1",
            ("h:q",),
            "ADD c INT, DROP CONSTRAINT IF EXISTS `h`",
        ),
        (
            "DROP FOREIGN KEY f, DROP FOREIGN KEY g",
            ("g:q", "f:q"),
            "DROP FOREIGN KEY f, DROP FOREIGN KEY g",
        ),
        ("DROP FOREIGN KEY other", ("f:q",), "DROP FOREIGN KEY other"),
        ("DROP FOREIGN KEY f", (), ""),
    ],
)
def test_a_key_is_dropped_by_the_name_that_the_target_has(
    actions: str, there: tuple[str, ...], wanted: str
) -> None:
    statement = classify(f"ALTER TABLE m.t {actions}", default_schema="m")
    found = present_keys(statement, keys(*OWN), keys(*there))
    assert found == (f"ALTER TABLE m.t {wanted}" if wanted else "")


@pytest.mark.parametrize(
    ("check", "wanted"),
    [
        ("CONSTRAINT `CONSTRAINT_1` CHECK (a > 0)", " CHECK (a > 0)"),
        ("CONSTRAINT `u_chk_2` CHECK (a > 0)", " CHECK (a > 0)"),
        ("CHECK (a > 0)", "CHECK (a > 0)"),
        ("CONSTRAINT `positive` CHECK (a > 0)", None),
    ],
)
def test_names_of_checks_that_servers_have_made_are_left_out(
    check: str, wanted: str | None
) -> None:
    found = without_check_names(classify(f"CREATE TABLE t (a INT, {check})", default_schema="d"))
    assert found == (None if wanted is None else f"CREATE TABLE t (a INT, {wanted})")


@pytest.mark.parametrize(
    ("keys", "checks", "unnamed"),
    [
        ({"f"}, set(), "CONSTRAINT `F` FOREIGN"),
        (set(), {"f"}, "CONSTRAINT f CHECK"),
        (set(), {"g"}, ""),
    ],
)
def test_the_server_names_the_constraints_whose_names_are_taken(
    keys: set[str], checks: set[str], unnamed: str
) -> None:
    statement = (
        "ALTER TABLE t ADD CONSTRAINT f CHECK (p > 0), ADD CONSTRAINT `F` FOREIGN KEY (p)"
        " REFERENCES u (id), ADD CONSTRAINT g FOREIGN KEY (q) REFERENCES u (id)"
    )
    found = without_names(classify(statement, default_schema="d"), keys, checks)
    wanted = " " + unnamed.split()[-1] if unnamed else ""
    assert found == (statement.replace(unnamed, wanted) if unnamed else statement)


def test_a_check_is_dropped_by_its_name_on_the_target() -> None:
    statement = "ALTER TABLE t DROP CHECK C, DROP CONSTRAINT d, DROP COLUMN c, DROP KEY c"
    found = renamed_checks(classify(statement, default_schema="d"), {"c": "t_chk_1", "d": "e"})
    wanted = "ALTER TABLE t DROP CHECK `t_chk_1`, DROP CONSTRAINT `e`, DROP COLUMN c, DROP KEY c"
    assert found == wanted

"""Collations that a statement leaves to its database or server, written out."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.default_collations import (
    DefaultCollations,
    with_available,
    with_column_charsets,
)

SERVER = "utf8mb4_0900_ai_ci"
CLAUSE = " CHARACTER SET cp1251 COLLATE cp1251_bin"


def written(collations: DefaultCollations, sql: str) -> str | None:
    return collations.written_out(classify(sql, default_schema="d"), SERVER)


def known(available: frozenset[str] | None = None) -> DefaultCollations:
    collations = DefaultCollations(available)
    collations.know({"d": "cp1251_bin"}, {"latin1": "latin1_swedish_ci"})
    return collations


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT, b ENUM('(', 'x'))# ENGINE=InnoDB PARTITION BY HASH (a)",
        "CREATE TABLE d.t (a INT CHARACTER SET x)#",
        "CREATE TABLE t# ENGINE=InnoDB AS SELECT 1",
        "CREATE TABLE t# (SELECT 1)",
        "CREATE TABLE t (a INT)# PARTITION BY LIST (a) (PARTITION p VALUES IN (1) COMMENT 'x')",
    ],
)
def test_a_table_takes_that_of_its_database(sql: str) -> None:
    assert written(known(), sql.replace("#", "")) == sql.replace("#", CLAUSE)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "CREATE DATABASE x CHARACTER SET DEFAULT",
            "CREATE DATABASE x CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        ),
        ("CREATE DATABASE x COLLATE DEFAULT", "CREATE DATABASE x COLLATE utf8mb4_general_ci"),
        (
            "CREATE TABLE t (a INT) DEFAULT CHARSET=DEFAULT",
            "CREATE TABLE t (a INT) DEFAULT CHARSET=cp1251 COLLATE cp1251_general_ci",
        ),
        (
            "CREATE TABLE t (a INT) CHARSET DEFAULT COLLATE cp1251_bin",
            "CREATE TABLE t (a INT) CHARSET cp1251 COLLATE cp1251_bin",
        ),
        (
            "CREATE TABLE t (a INT) CHARSET latin1 COLLATE DEFAULT",
            "CREATE TABLE t (a INT) CHARSET latin1 COLLATE latin1_swedish_ci",
        ),
    ],
)
def test_the_word_default_stands_for_a_charset_and_its_own_collation(
    sql: str, expected: str
) -> None:
    collations = known()
    names = {"latin1": "swedish", "cp1251": "general", "utf8mb4": "general"}
    charsets = {charset: f"{charset}_{name}_ci" for charset, name in names.items()}
    collations.know({"d": "cp1251_bin"}, charsets)
    assert written(collations, sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (a INT)ENGINE=InnoDB", f"CREATE TABLE t (a INT){CLAUSE} ENGINE=InnoDB"),
        ("CREATE TABLE t(SELECT 1)", f"CREATE TABLE t{CLAUSE} (SELECT 1)"),
        (
            "CREATE TABLE t (a INT) CHARSET='latin1'ENGINE=InnoDB",
            "CREATE TABLE t (a INT) CHARSET='latin1' COLLATE latin1_swedish_ci ENGINE=InnoDB",
        ),
    ],
)
def test_it_stands_apart_from_what_follows(sql: str, expected: str) -> None:
    assert written(known(), sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT) COLLATE=latin1_bin",
        "CREATE TABLE t (a INT) DEFAULT CHARACTER SET = x COLLATE x_bin",
        "CREATE TABLE t LIKE u",
        "CREATE TABLE other.t (a INT)",
        "ALTER DATABASE d COMMENT 'x'",
        "DROP DATABASE d",
        "ALTER TABLE t ADD b VARCHAR(9)",
    ],
)
def test_what_needs_or_has_none_stays(sql: str) -> None:
    assert written(known(), sql) is None


def test_a_charset_alone_has_its_server_s_collation() -> None:
    sql = "CREATE TABLE t (a INT) CHARSET=latin1 ENGINE=InnoDB"
    assert written(known(), sql) == (
        "CREATE TABLE t (a INT) CHARSET=latin1 COLLATE latin1_swedish_ci ENGINE=InnoDB"
    )


def test_a_database_takes_that_of_its_session_and_passes_it_on() -> None:
    collations = known()
    clause = f" CHARACTER SET utf8mb4 COLLATE {SERVER}"
    assert written(collations, "CREATE DATABASE e") == f"CREATE DATABASE e{clause}"
    assert written(collations, "CREATE TABLE e.t (a INT)") == f"CREATE TABLE e.t (a INT){clause}"


def test_a_changed_database_passes_on_the_new_one() -> None:
    collations = known()
    written(collations, "ALTER DATABASE d DEFAULT COLLATE cp1251_general_ci")
    assert written(collations, "CREATE TABLE t (a INT)") == (
        "CREATE TABLE t (a INT) CHARACTER SET cp1251 COLLATE cp1251_general_ci"
    )


def test_a_database_that_was_there_keeps_its_own() -> None:
    collations = known()
    written(collations, "CREATE DATABASE IF NOT EXISTS d CHARACTER SET latin1")
    assert written(collations, "CREATE TABLE t (a INT)") == f"CREATE TABLE t (a INT){CLAUSE}"


def test_the_nearest_takes_the_place_of_one_that_the_target_lacks() -> None:
    collations = known(frozenset({"utf8mb4_nopad_bin", "utf8mb4_bin"}))
    assert written(collations, "CREATE DATABASE e") == (
        "CREATE DATABASE e CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
    )


def test_a_session_has_collations_of_its_own_for_charsets() -> None:
    collations = known()
    own = ("latin1_bin", "utf8mb4_general_ci")
    sql = classify("CREATE TABLE t (a INT) CHARSET=latin1", default_schema="d")
    assert collations.written_out(sql, SERVER, own) == f"{sql.sql} COLLATE latin1_bin"
    sql = classify("CREATE DATABASE e CHARACTER SET utf8mb4", default_schema="d")
    assert collations.written_out(sql, SERVER, own) == f"{sql.sql} COLLATE utf8mb4_general_ci"


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD b VARCHAR(9) CHARACTER SET latin1# NOT NULL, ADD c INT",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS b TEXT CHARSET latin1#",
        "ALTER TABLE t ADD (b TEXT CHARSET latin1#, c ENUM('CHARSET latin1') CHAR SET latin1#)",
        "ALTER TABLE t CHANGE charset b TEXT CHARSET 'latin1'# FIRST, DROP charset",
        "ALTER TABLE t MODIFY b TEXT CHARSET latin1# COMMENT 'COLLATE', ADD c TEXT COLLATE x_bin",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1#",
        "ALTER TABLE t ENGINE=InnoDB DEFAULT CHARSET=latin1#, ADD KEY (charset)",
        "CREATE TABLE t (a INT, charset VARCHAR(9) CHARACTER SET latin1#) COLLATE=x_bin",
        "CREATE TABLE t (b TEXT CHARSET latin1#, c TEXT CHARSET latin1#) CHARSET=latin1#",
        "ALTER TABLE t ADD b TEXT CHARSET latin1# AS (CONVERT(a USING utf8) COLLATE utf8_bin)",
    ],
)
def test_a_charset_of_a_column_has_its_server_s_collation(sql: str) -> None:
    expected = sql.replace("#", " COLLATE latin1_swedish_ci")
    assert written(known(), sql.replace("#", "")) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD b VARCHAR(9) CHARACTER SET latin1 NOT NULL COLLATE latin1_bin",
        "ALTER TABLE t ADD b TEXT CHARACTER SET latin1 BINARY",
        "ALTER TABLE t ADD b TEXT BINARY CHARACTER SET latin1",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin",
        "ALTER TABLE t CHARSET latin1, COLLATE latin1_bin",
        "ALTER TABLE t ADD b INT AS (LENGTH(CONVERT(a, CHAR CHARACTER SET latin1)))",
        "ALTER TABLE t ADD charset INT",
        "ALTER TABLE t ALTER charset SET DEFAULT 'latin1'",
        "ALTER TABLE t ADD b TEXT CHARSET koi8r",
        "CREATE TABLE t (a TEXT CHARSET latin1 COLLATE latin1_bin) COLLATE=x_bin",
        "CREATE TABLE t (a INT) COLLATE=x_bin SELECT CONVERT(1, CHAR CHARACTER SET latin1) AS b",
        "ALTER TABLE t ADD COLUMN IF",
        "ALTER TABLE t ADD b TEXT CHARACTER SET",
    ],
)
def test_what_says_its_collation_or_names_no_charset_stays(sql: str) -> None:
    assert written(known(), sql) is None


@pytest.mark.parametrize("there", ["utf8", "utf8mb3"])
@pytest.mark.parametrize("here", ["utf8", "utf8mb3"])
@pytest.mark.parametrize("named", ["utf8", "utf8mb3"])
def test_a_charset_that_has_had_two_names_is_known_by_both(
    named: str, here: str, there: str
) -> None:
    collations = known(frozenset({f"{there}_general_ci"}))
    collations.know({}, {here: f"{here}_general_ci"})
    sql = f"ALTER TABLE t ADD b TEXT CHARSET {named}"
    assert written(collations, sql) == f"{sql} COLLATE {there}_general_ci"


@pytest.mark.parametrize(
    ("collation", "expected"),
    [
        ("latin1_swedish_ci", "latin1_bin"),
        ("utf8mb4_0900_ai_ci", "utf8mb4_nopad_bin"),
        ("latin1_nopad_bin", "latin1_nopad_bin"),
        ("UTF8MB4_BIN", "UTF8MB4_BIN"),
        ("cp1251_bin", "cp1251_bin"),
    ],
)
def test_collations_that_a_server_lacks(collation: str, expected: str) -> None:
    """The nearest ones take their places, unless they ignore spaces that the others count."""
    available = {"latin1_bin", "utf8mb4_nopad_bin", "utf8mb4_bin"}
    sql = "ALTER TABLE t ADD a SET('COLLATE x') CHARACTER SET c COLLATE {} NULL, ADD b INT"
    assert with_available(sql.format(collation), available) == sql.format(expected)


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        ("ADD a varchar(9) DEFAULT 'x'", "ADD a varchar(9) {} DEFAULT 'x'"),
        ("ADD a text", "ADD a text {}"),
        ("MODIFY a enum('a)', 'b') NOT NULL", "MODIFY a enum('a)', 'b') {} NOT NULL"),
        ("CHANGE a b character varying (9)", "CHANGE a b character varying (9) {}"),
        ("ADD (a char, b int, c text(9))", "ADD (a char {}, b int, c text(9) {})"),
        ("ADD a varchar(9) AS (concat(b)) STORED", "ADD a varchar(9) {} AS (concat(b)) STORED"),
        ("ADD a varchar(9) COLLATE utf8_bin", None),
        ("ADD a varchar(9) CHARSET latin1", None),
        ("ADD a varchar(9) CHARACTER SET latin1", None),
        ("ADD a int, ADD KEY (b), ADD CONSTRAINT `text` UNIQUE (b)", None),
        ("ADD a text, DEFAULT CHARSET latin1", None),
        ("ADD a text, CONVERT TO CHARACTER SET latin1", None),
        ("ADD a text, COLLATE latin1_bin", None),
        ("DROP a", None),
    ],
)
def test_new_columns_get_the_charset_of_their_table(actions: str, wanted: str | None) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="s")
    found = with_column_charsets(statement, "utf8mb3", "utf8mb3_bin")
    text = (wanted or actions).replace("{}", "CHARACTER SET utf8mb3 COLLATE utf8mb3_bin")
    assert found == f"ALTER TABLE t {text}"

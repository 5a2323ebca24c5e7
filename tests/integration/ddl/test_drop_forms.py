"""Without coordination: DROP TABLE in all the forms that clients write it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pymysql
import pytest

from tests.integration.ddl.test_dropped_tables import COLUMNS, shown
from tests.support.tasks.merging import Merging

FORMS: dict[str, tuple[tuple[str, ...], str]] = {
    "plain": (("DROP TABLE {a}, {s}",), "s"),
    "both": (("DROP TABLE {a}, {b}",), "p"),
    "tables": (("DROP TABLES {a}, {b}, {s} RESTRICT",), "ps"),
    "cascade": (("DROP TABLE IF EXISTS {a}, {s} CASCADE",), "s"),
    "qualified": (("DROP TABLE {db}.{a}, `{db}` . `{b}`, {db}.`{s}`",), "ps"),
    "elsewhere": (("USE {other}", "DROP TABLE z, {db}.{a}, {db}.{s}"), "s"),
    "comments": (
        (
            "/* a */ DROP /* TABLE x, */ TABLE /*!40000 IF EXISTS */ {a} -- , {b}\n"
            " , # {b}\n {s} /* , {b} */",
        ),
        "s",
    ),
    "ansi": (("SET sql_mode = 'ANSI_QUOTES'", 'DROP TABLE "{a}", "{s}"'), "s"),
    "temporary": (
        (
            "CREATE TEMPORARY TABLE {a} (x INT)",
            "CREATE TEMPORARY TABLE {s} (x INT)",
            "DROP TABLE {a}, {s}",
        ),
        "",
    ),
    "temporary word": (
        (
            "CREATE TEMPORARY TABLE {a} (x INT)",
            "CREATE TEMPORARY TABLE {s} (x INT)",
            "DROP TEMPORARY TABLE {a}, {s}",
        ),
        "",
    ),
    "mixed with temporary": (
        ("CREATE TEMPORARY TABLE {a} (x INT)", "DROP TABLE {a}, {s}, {b}"),
        "s",
    ),
    "hidden by temporary": (
        ("CREATE TEMPORARY TABLE {s} (x INT)", "DROP TABLE {s}", "DROP TABLE {s}, {a}"),
        "s",
    ),
    "twice": (("DROP TABLE IF EXISTS {a}, {nowhere}, {a}x",), ""),
    "a view": (
        (
            "CREATE VIEW {nowhere} AS SELECT 1 AS x",
            "DROP TABLE IF EXISTS {a}, {s}",
            "DROP VIEW {nowhere}",
        ),
        "s",
    ),
    "missing": (("?DROP TABLE {a}, {nowhere}, {s}",), "?"),
    "a view among them": (
        ("CREATE VIEW {nowhere} AS SELECT 1 AS x", "?DROP TABLE {a}, {nowhere}, {s}"),
        "?",
    ),
    "a view with if exists": (
        ("CREATE VIEW {nowhere} AS SELECT 1 AS x", "?DROP TABLE IF EXISTS {a}, {nowhere}, {s}"),
        "?",
    ),
    "a sequence of statements": (
        ("DROP TABLE {a}", "CREATE TABLE {a} " + COLUMNS, "DROP TABLE {a}, {b}"),
        "p",
    ),
    "parent": (
        (
            "CREATE TABLE {nowhere} (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES {a} (id))",
            "?DROP TABLE {a}, {s}",
        ),
        "?",
    ),
    "unlogged": (("SET foreign_key_checks = 0", "DROP TABLE IF EXISTS {b},{a},{s}"), "ps"),
}

"""What is run, where {a} and {b} are the two shards of one target and {s} is the only one of
another; and which of the targets are gone then, ? for what the source says. ?: it may be refused,
and carried out in part."""

MAKE = f"CREATE TABLE {{}} {COLUMNS}"


def rows(merging: Merging, tables: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """By target, the rows that its shards have had; None where all of them are gone."""
    there = {str(row[0]) for row in merging.on(merging.source, "SHOW TABLES")}
    return {
        target: tuple((n, n) for n in range(len(shards))) if there & set(shards) else None
        for target, shards in tables.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "server", ["mariadb_source", "mysql56_source", "mysql_source", "mariadb11_source"]
)
async def test_what_is_dropped_in_any_form_is_dropped(
    request: pytest.FixtureRequest, merging_from: Callable[..., Merging], server: str
) -> None:
    merging = merging_from(request.getfixturevalue(server))
    db = merging.database
    other = f"{db}_other"
    merging.source.execute(f"CREATE DATABASE {other}", MAKE.format(f"{other}.z"))
    tables: dict[str, tuple[str, ...]] = {}
    for key in (f"f{number:02}" for number in range(len(FORMS))):
        merging.create(f"{key}p", COLUMNS, shards=2)
        merging.create(f"{key}s", COLUMNS)
        tables |= {f"{key}p": (f"{key}p_1", f"{key}p_2"), f"{key}s": (f"{key}s_1",)}
    async with merging.running() as generation:
        for shards in tables.values():
            merging.do(*(f"INSERT INTO {name} VALUES ({n}, {n})" for n, name in enumerate(shards)))
        for number, (form, (statements, gone)) in enumerate(FORMS.items()):
            pair, (single,) = tables[f"f{number:02}p"], tables[f"f{number:02}s"]
            names = {"a": pair[0], "b": pair[1], "s": single, "nowhere": f"{pair[0][:-1]}7"}
            named = [sql.format(**names, db=db, other=other) for sql in statements]
            try:
                merging.source.execute(*(sql.lstrip("?") for sql in named), database=db)
            except pymysql.err.MySQLError:
                assert named[-1].startswith("?"), form
            found = rows(merging, {"p": pair, "s": (single,)})
            assert gone == "?" or {target for target, left in found.items() if not left} == {*gone}
        await merging.caught_up(generation)
        assert {target: shown(merging, target) for target in tables} == rows(merging, tables)
    left = {str(row[0]) for row in merging.on(merging.source, "SHOW TABLES")}
    async with merging.running() as generation:
        # Shards that are there are still followed, after a restart, too.
        merging.do(*(f"UPDATE {n} SET v = v" for n in sorted(left & set(sum(tables.values(), ())))))
        await merging.caught_up(generation)
        assert {target: shown(merging, target) for target in tables} == rows(merging, tables)

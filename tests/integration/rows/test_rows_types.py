"""Every column type at its limits, from each kind of source to the target, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.merging import Merging
from tests.support.values.column_values import MARIADB_ONLY, NUMBERS, STRINGS, TEMPORAL

NOT_IN_KEYS = ("TEXT", "BLOB", "GEOMETRY", "POINT", "JSON", "COMPRESSED", "CHAR(255)")
"""Types that no key takes in full, or not with every server."""

Types = dict[str, list[str]]


LACKING_AT_TIDB = ("utf16", "utf32", "ucs2", "sjis", "cp1251", "GEOMETRY", "POINT", "COMPRESSED")
KEPT_OTHERWISE_AT_TIDB = ("UUID", "INET", "JSON", "latin1")
"""Types it lacks or normalises, and a charset that it keeps in other bytes: they have own tests."""


def groups_of(server: DatabaseServer, target: DatabaseServer) -> dict[str, Types]:
    groups = {"numbers": NUMBERS, "temporal": TEMPORAL, "strings": STRINGS}
    if isinstance(server, MariaDBServer) and not isinstance(target, MySQLServer):
        groups |= {"own": MARIADB_ONLY}
    if isinstance(target, TiDBServer):
        unfit = LACKING_AT_TIDB + KEPT_OTHERWISE_AT_TIDB
        groups = {
            name: {k: v for k, v in types.items() if not any(word in k for word in unfit)}
            for name, types in groups.items()
        }
    return {name: types for name, types in groups.items() if types}


def rows(types: Types) -> list[list[str]]:
    """As many rows as the type with the most values has values, and one of NULLs."""
    longest = max(map(len, types.values()))
    rotated = [[v[n % len(v)] for v in types.values()] for n in range(longest)]
    return [*rotated, ["NULL"] * len(types)]


def selected(types: Types, target: DatabaseServer, key: str) -> str:
    """All columns; TiDB shows the same approximate or filled up number with other digits."""
    if not isinstance(target, TiDBServer):
        return "*"
    shown = [
        f"c{n}+0e0"
        if re.match("FLOAT|DOUBLE", kind)
        else f"c{n}+0"
        if "ZEROFILL" in kind
        else f"c{n}"
        for n, kind in enumerate(types)
    ]
    return ",".join([key, *shown])


def columns(types: Types) -> str:
    return ", ".join(f"c{n} {kind}" for n, kind in enumerate(types))


def key_type(kind: str) -> str:
    # With a default of its own a TIMESTAMP does not change whenever its row does.
    default = " DEFAULT '1970-01-01 00:00:01'" if "TIMESTAMP" in kind else ""
    return kind.replace(" NULL", "") + " NOT NULL" + default


EVERY_KIND = ["mariadb_source", "mariadb_source_full", "mysql56_source"]


@matrix("types", broad=True)
async def test_every_type_beside_the_key(merging: Merging) -> None:
    groups = groups_of(merging.source, merging.target)
    for name, types in groups.items():
        merging.create(name, f"(id INT PRIMARY KEY, {columns(types)})")
    shown = {name: selected(types, merging.target, "id") for name, types in groups.items()}
    async with merging.running() as generation:
        for name, types in groups.items():
            values = rows(types)
            merging.do(
                *(f"INSERT INTO {name}_1 VALUES ({n}, {','.join(v)})" for n, v in enumerate(values))
            )
        await merging.check(generation, shown)
        for name, types in groups.items():
            values = rows(types)
            # Every row takes over what the next one had, and the last but one becomes NULL.
            merging.do(
                *(
                    f"UPDATE {name}_1 SET "
                    + ",".join(f"c{i} = {value}" for i, value in enumerate(row))
                    + f" WHERE id = {n}"
                    for n, row in enumerate(values[1:])
                ),
                f"DELETE FROM {name}_1 WHERE id = 1",
                f"UPDATE {name}_1 SET id = id + 1000 WHERE id % 2 = 0",
            )
        await merging.check(generation, shown)


@matrix("types")
async def test_every_type_as_the_key(merging: Merging) -> None:
    groups = groups_of(merging.source, merging.target)
    types = {k: v for types in groups.values() for k, v in types.items()}
    usable = [kind for kind in types if not any(word in kind for word in NOT_IN_KEYS)]
    # Index 0 of an ENUM and its label '' are two keys that no client can tell apart.
    kinds = {
        f"k{n}": (key_type(kind), [v for v in types[kind] if v != "0" or "ENUM" not in kind])
        for n, kind in enumerate(usable)
    }
    for name, (kind, _) in kinds.items():
        merging.create(name, f"(v INT, k {kind}, PRIMARY KEY (k))")
    shown = {
        name: selected({kind: []}, merging.target, "v").replace("c0", "k")
        for name, (kind, _) in kinds.items()
    }
    async with merging.running() as generation:
        # Values that a collation takes for equal are ignored.
        merging.do(
            *(
                f"INSERT IGNORE INTO {name}_1 VALUES "
                + ",".join(f"({n}, {value})" for n, value in enumerate(values))
                for name, (_, values) in kinds.items()
            )
        )
        await merging.check(generation, shown)
        merging.do(
            *(
                statement
                for name, (_, values) in kinds.items()
                for statement in (
                    f"UPDATE {name}_1 SET v = v + 100",
                    f"DELETE FROM {name}_1 WHERE v = 101",
                    f"UPDATE IGNORE {name}_1 SET k = {values[1]} WHERE v = 100",
                    f"INSERT IGNORE INTO {name}_1 VALUES (7, {values[0]})",
                )
            )
        )
        await merging.check(generation, shown)


@matrix("types")
async def test_every_type_in_a_table_without_a_key(merging: Merging) -> None:
    groups = groups_of(merging.source, merging.target)
    for name, types in groups.items():
        merging.create(name, f"(n INT, {columns(types)})", shards=2)
    shown = {name: selected(types, merging.target, "n") for name, types in groups.items()}
    async with merging.running() as generation:
        for name, types in groups.items():
            for n, row in enumerate(rows(types)):
                values = f"({n}, {','.join(row)})"
                merging.do(f"INSERT INTO {name}_1 VALUES {values}, {values}, {values}")
                merging.do(f"INSERT INTO {name}_2 VALUES {values}")
        await merging.check(generation, shown)
        for name in groups:
            merging.do(
                *(f"DELETE FROM {name}_1 WHERE n = {n} LIMIT 1" for n in range(20)),
                *(f"UPDATE {name}_1 SET n = -{n} WHERE n = {n} LIMIT 1" for n in range(20)),
                f"DELETE FROM {name}_2 WHERE n % 2 = 0",
            )
        await merging.check(generation, shown)


async def test_generated_columns(merging: Merging) -> None:
    if not isinstance(merging.source, MariaDBServer):
        pytest.skip("MySQL 5.6 has no generated columns")
    computed = "v INT AS (n + 1) VIRTUAL, s VARCHAR(20) AS (CONCAT('g', n)) STORED"
    merging.create("both_sides", f"(id INT PRIMARY KEY, {computed}, n INT)")
    merging.create(
        "at_source",
        f"(id INT PRIMARY KEY, {computed}, n INT)",
        target="(id INT PRIMARY KEY, v INT, s VARCHAR(20), n INT)",
    )
    merging.create("only_at_source", f"(id INT PRIMARY KEY, {computed}, n INT)",
                   target="(id INT PRIMARY KEY, n INT)")  # fmt: skip
    tables = ("both_sides", "at_source", "only_at_source")
    selected = {"only_at_source": "id, n"}
    async with merging.running() as generation:
        for table in tables:
            merging.do(
                f"INSERT INTO {table}_1 (id, n) VALUES (1, 1), (2, NULL), (3, 3), (4, 2147483646)"
            )
        await merging.check(generation, selected)
        for table in tables:
            merging.do(
                f"UPDATE {table}_1 SET n = -n",
                f"UPDATE {table}_1 SET id = id + 10 WHERE id < 3",
                f"DELETE FROM {table}_1 WHERE id = 3",
            )
        await merging.check(generation, selected)


@pytest.mark.not_on_tidb("it lacks charsets and types of this table")
async def test_compressed_events(
    merging_from: Callable[..., Merging], start_server: Callable[..., DatabaseServer]
) -> None:
    server = start_server(
        MariaDBServer, {"log_bin_compress": "1", "log_bin_compress_min_len": "10"}
    )
    merging = merging_from(server)
    merging.create("strings", f"(id INT PRIMARY KEY, {columns(STRINGS)})")
    async with merging.running() as generation:
        merging.do(
            *(
                f"INSERT INTO strings_1 VALUES ({n}, {','.join(v)})"
                for n, v in enumerate(rows(STRINGS))
            ),
            "ALTER TABLE strings_1 ADD added_by_a_compressed_statement INT DEFAULT 7",
            "UPDATE strings_1 SET id = id + 100",
            "DELETE FROM strings_1 WHERE id = 102",
        )
        await merging.check(generation)


CHARSETS = {
    "latin1": "_latin1 0x" + bytes(range(32, 256)).hex(),
    "gbk": "_gbk 0xD55CE55C",
    "utf16": "_utf16 0x00E9D83DDE00005C",
    "ucs2": "_ucs2 0x5C095C0A00E9",
    "sjis": "_sjis 0x835C955C",
    "cp1251": "_cp1251 0xCFF0E8E2E5F2",
    "utf8": "_utf8 0xE282AC",
}


@pytest.mark.not_on_tidb("its latin1 is UTF-8, see test_tidb")
async def test_text_in_another_charset_on_the_target(merging: Merging) -> None:
    shard, target = (
        "(k VARCHAR(20) CHARACTER SET {key} PRIMARY KEY, "
        + ", ".join(f"{name} TEXT CHARACTER SET {charset or name}" for name in CHARSETS)
        + ", e ENUM('a','é') CHARACTER SET {key}, s SET('é','ü') CHARACTER SET {key})"
        for charset in ("", "utf8mb4")
    )
    merging.create("t", shard.format(key="latin1"), target=target.format(key="utf8mb4"))
    merging.create("narrow", "(k VARCHAR(9) CHARACTER SET utf8mb4 PRIMARY KEY)",
                   target="(k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY)")  # fmt: skip
    utf8 = "HEX(CONVERT({} USING utf8mb4))"
    names = ["k", *CHARSETS, "e", "s"]
    selected = {
        "t": ",".join(utf8.format(name) for name in names),
        "narrow": utf8.format("k"),
    }
    async with merging.running() as generation:
        texts = ",".join(CHARSETS.values())
        empty = ",".join(["''"] * len(CHARSETS))
        merging.do(
            f"INSERT INTO t_1 VALUES ('é', {texts}, 'é', 'é,ü'), ('ß', {empty}, 0, '')",
            "INSERT INTO narrow_1 VALUES ('é'), ('€'), ('x')",
        )
        await merging.check(generation, selected)
        merging.do(
            f"UPDATE t_1 SET e = 'a', latin1 = {CHARSETS['latin1']} WHERE k = 'ß'",
            "UPDATE t_1 SET k = 'ä', s = 'ü' WHERE k = 'é'",
            "UPDATE narrow_1 SET k = 'ü' WHERE k = '€'",
            "DELETE FROM narrow_1 WHERE k = 'é'",
        )
        await merging.check(generation, selected)

"""Binlogs as servers write them with each setting that changes their format, read to equal rows.

A server's settings change while the task follows it, from file to file, and each time it gets the
same changes of tables of all types. Then its binlogs are read once more from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import anyio.to_thread
import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.tasks.merging import Merging
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import start_of
from tests.support.values.column_values import NUMBERS, STRINGS, TEMPORAL

TABLES: Mapping[str, Mapping[str, list[str]]] = {
    "numbers": NUMBERS,
    "temporal": TEMPORAL,
    "strings": STRINGS,
}
ROWS_PER_SETTING = 1000
"""Keys between those of two settings."""

Values = tuple[object, ...]


@dataclass(frozen=True)
class Family:
    """A server, how it is started, and the values of each of its settings."""

    server: type[DatabaseServer]
    settings: Mapping[str, tuple[str, ...]]
    options: Mapping[str, str | None]
    path: tuple[str, ...] = ()
    """Modes of GTIDs, which a server only changes in these steps."""

    def runs(self, *, every: bool) -> list[list[str]]:
        """For each combination, or one of each mode, the statements that bring the server there."""
        names = list(self.settings)
        combinations = list(product(*self.settings.values()))
        found = []
        for number, mode in enumerate(self.path or ("", "")):
            changed = [f"SET GLOBAL gtid_mode = {mode}"] if mode else []
            chosen = combinations if every else [combinations[-(number % 2)]]
            for values in chosen:
                pairs = zip(names, values, strict=True)
                found.append(changed + [f"SET GLOBAL {name} = {value}" for name, value in pairs])
            if every and not mode:
                break
        return found


CHECKSUM = {"binlog_checksum": ("NONE", "CRC32")}
ROWS_QUERY = {"binlog_rows_query_log_events": ("OFF", "ON")}
MARIADB: Mapping[str, tuple[str, ...]] = {
    "binlog_row_metadata": ("NO_LOG", "MINIMAL", "FULL"),
    "log_bin_compress": ("OFF", "ON"),
    **CHECKSUM,
}
COMPRESS_ALL: Mapping[str, str | None] = {"log_bin_compress_min_len": "10"}
FAMILIES = {
    "mariadb 10.11": Family(MariaDBServer, MARIADB, COMPRESS_ALL),
    "mariadb 11.8": Family(
        MariaDB11Server, {"binlog_gtid_index": ("ON", "OFF"), **MARIADB}, COMPRESS_ALL
    ),
    "mysql 5.6": Family(MySQL56Server, {**CHECKSUM, **ROWS_QUERY}, {}),
    "mysql 5.6 with gtids": Family(MySQL56Server, {**CHECKSUM, **ROWS_QUERY}, GTID_OPTIONS),
    "mysql 9.7": Family(
        MySQLServer,
        {
            "binlog_row_metadata": ("MINIMAL", "FULL"),
            "binlog_transaction_compression": ("OFF", "ON"),
            **CHECKSUM,
        },
        {},
        ("ON", "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"),
    ),
}
READABLE = "SET GLOBAL gtid_mode = OFF_PERMISSIVE"
"""A server hands out no transactions that its present mode would not write."""


def columns(types: Mapping[str, list[str]]) -> str:
    return ", ".join(f"c{n} {kind}" for n, kind in enumerate(types))


def changes(table: str, types: Mapping[str, list[str]], first: int) -> list[str]:
    """Rows with all values of all types, changed, moved and deleted."""
    longest = max(map(len, types.values()))
    rows = [[v[n % len(v)] for v in types.values()] for n in range(longest)]
    rows.append(["NULL"] * len(types))
    inserted = [
        f"INSERT INTO {table}_1 VALUES ({first + n}, {', '.join(row)})"
        for n, row in enumerate(rows)
    ]
    updated = [
        f"UPDATE {table}_1 SET {', '.join(f'c{i} = {value}' for i, value in enumerate(row))}"
        f" WHERE id = {first + n}"
        for n, row in enumerate(rows[1:])
    ]
    mine = f"id BETWEEN {first} AND {first + ROWS_PER_SETTING - 1}"
    return [
        "BEGIN",
        *inserted,
        "COMMIT",
        "BEGIN",
        *updated,
        f"UPDATE {table}_1 SET id = id + 500 WHERE id % 2 = 0 AND {mine}",
        f"DELETE FROM {table}_1 WHERE id % 5 = 1 AND {mine}",
        "COMMIT",
    ]


def write_with(merging: Merging, number: int, settings: Sequence[str]) -> None:
    # The file ends in which the format was another one; sessions begin with what is global.
    merging.source.execute(*settings, "FLUSH BINARY LOGS")
    for table, types in TABLES.items():
        merging.do(*changes(table, types, number * ROWS_PER_SETTING))


def by_setting(rows: Iterable[tuple[Any, ...]], runs: int) -> list[set[Values]]:
    """What the rows of each setting are, but for the part of the key that tells the setting."""
    found: list[set[Values]] = [set() for _ in range(runs)]
    for key, *values in rows:
        number, of_setting = divmod(int(key), ROWS_PER_SETTING)
        found[number].add((of_setting, *values))
    return found


@pytest.mark.parametrize(
    ("kind", "every"),
    [
        ("mysql 9.7", False),
        *(pytest.param(kind, True, marks=pytest.mark.slow) for kind in FAMILIES),
    ],
)
async def test_rows_are_the_same_however_they_are_logged(
    kind: str, every: bool, start_server: StartServer, merging_from: Callable[..., Merging]
) -> None:
    family = FAMILIES[kind]
    merging = merging_from(start_server(family.server, family.options))
    for table, types in TABLES.items():
        merging.create(table, f"(id INT PRIMARY KEY, {columns(types)})")
    start = start_of(merging.source)
    runs = family.runs(every=every)
    async with merging.running() as generation:
        for number, settings in enumerate(runs):
            await anyio.to_thread.run_sync(write_with, merging, number, settings)
            await merging.caught_up(generation)
        await merging.check(generation)
    for table in TABLES:
        rows = rows_of(merging.target, f"{merging.database}.{table}")
        first, *others = by_setting(rows, len(runs))
        assert len(first) > len(TABLES)
        assert [number for number, rows in enumerate(others, 1) if rows != first] == []
        merging.on(merging.target, f"DELETE FROM {table}")
    # All over again, as a task that begins there.
    merging.target.execute(f"DROP DATABASE {merging.database}_meta")
    if family.path:
        merging.source.execute(READABLE)
    merging.changed(mode="incremental")
    merging.instance = {"meta": start}
    async with merging.running() as generation:
        await merging.check(generation)


async def test_transactions_that_the_mode_of_gtids_would_not_write(
    start_server: StartServer, merging_from: Callable[..., Merging]
) -> None:
    merging = merging_from(start_server(MySQLServer))
    merging.create("t", "(id INT PRIMARY KEY)")
    assert merging.task
    merging.do("INSERT INTO t_1 VALUES (1)")
    modes = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
    merging.source.execute(*(f"SET GLOBAL gtid_mode = {mode}" for mode in modes))
    fault = await merging.fault()
    assert "SET GLOBAL gtid_mode = OFF_PERMISSIVE" in str(fault)
    merging.source.execute(READABLE)
    async with merging.running() as generation:
        await merging.check(generation)

"""After statements of which only the shards know the values, targets are the union of the shards.

All kinds of such statements are made at once, each on a table of its own, shard after shard, while
rows are inserted, changed and deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import anyio
import anyio.to_thread
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

pytestmark = pytest.mark.slow

MergingFrom = Callable[..., Merging]

COLUMNS = (
    "(id INT PRIMARY KEY, v INT NOT NULL DEFAULT 0, at DATETIME, d DECIMAL(10,3),"
    " s VARCHAR(40) CHARACTER SET latin1)"
)
STEP = "SET auto_increment_increment = 8, auto_increment_offset = {}"
"""For different numbers in all shards."""
ROW = "({id}, {id}, '2026-03-{day:02} 02:30:15', {id}.126, 'a text of {id}, longer than others')"


@dataclass(frozen=True)
class Kind:
    """A statement, as a shard with the number ``{n}`` makes it.

    Attributes:
        statements: executed in one session on ``{t}``.
        columns: those of the table before.
        modern: whether MySQL before 8.0 and MySQL's ALTER TABLE lack it.
    """

    statements: tuple[str, ...]
    columns: str = COLUMNS
    modern: bool = False


KINDS = {
    "moment": Kind(
        (
            "SET timestamp = {moment}",
            "ALTER TABLE {t} ADD c DATETIME DEFAULT now(),"
            " ADD e DATETIME(6) NOT NULL DEFAULT now(6)",
        )
    ),
    "stamp": Kind(
        (
            "SET timestamp = {moment}",
            "ALTER TABLE {t} ADD c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP"
            " ON UPDATE CURRENT_TIMESTAMP",
        )
    ),
    "chance": Kind(
        ("ALTER TABLE {t} ADD c CHAR(36) DEFAULT uuid(), ADD r DOUBLE DEFAULT (rand())",),
        modern=True,
    ),
    "counted": Kind(("ALTER TABLE {t} ADD c INT NOT NULL AUTO_INCREMENT, ADD KEY (c)",)),
    "numbered": Kind(
        (
            STEP.format("{n}"),
            "ALTER TABLE {t} ADD c BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        ),
        COLUMNS.replace(" PRIMARY KEY", ""),
    ),
    "zone": Kind(("SET time_zone = '+0{n}:00'", "ALTER TABLE {t} MODIFY at TIMESTAMP NULL")),
    "rounded": Kind(("ALTER TABLE {t} MODIFY d DECIMAL(10,1)",)),
    "cut": Kind(("ALTER TABLE {t} MODIFY s VARCHAR(7) CHARACTER SET latin1",)),
    "given": Kind(
        (
            "ALTER TABLE {t} ADD c INT NOT NULL DEFAULT 5",
            "ALTER TABLE {t} ALTER c SET DEFAULT 9",
        )
    ),
    "again": Kind(
        (
            "SET timestamp = {moment}",
            "ALTER TABLE {t} ADD c DATETIME DEFAULT now()",
            "ALTER TABLE {t} DROP c",
            "ALTER TABLE {t} ADD c DATETIME DEFAULT now()",
        )
    ),
    "renamed": Kind(
        (
            "SET timestamp = {moment}",
            "ALTER TABLE {t} ADD c DATETIME DEFAULT now()",
            "ALTER TABLE {t} CHANGE c e DATETIME(3) NULL",
        )
    ),
}


async def each_statement(merging: Merging, mode: str, *, modern: bool) -> None:
    merging.mode, merging.more["shard-mode"] = "all", mode
    kinds = {name: kind for name, kind in KINDS.items() if modern or not kind.modern}
    servers = list(merging.sources.values())
    shards = [(server, number) for number in (1, 2) for server in servers]
    for table, kind in kinds.items():
        merging.create(table, kind.columns, shards=2)
        for at, (server, number) in enumerate(shards):
            rows = (ROW.format(id=1000 * at + n, day=1 + n % 28) for n in range(40))
            merging.on(server, f"INSERT INTO {table}_{number} VALUES {','.join(rows)}")
    written = anyio.Event()
    async with merging.running() as generation:
        await merging.copied(generation)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, merging, shards, list(kinds), written)
            for at, (server, number) in enumerate(shards):
                for table, kind in kinds.items():
                    names = {"t": f"{table}_{number}", "n": at + 1, "moment": 1_700_000_000 + at}
                    statements = [text.format_map(names) for text in kind.statements]
                    await anyio.to_thread.run_sync(merging.on, server, *statements)
            written.set()
        with anyio.move_on_after(2 * PATIENCE):
            while merging.differences():
                await anyio.sleep(0.2)
        assert merging.differences() == {}
        await until_reconciled(merging, generation)
        await merging.check(generation)


async def write(
    merging: Merging,
    shards: list[tuple[DatabaseServer, int]],
    tables: list[str],
    over: anyio.Event,
) -> None:
    """Insert, change and delete rows of all shards in turn."""
    for turn in count():
        for at, (server, number) in enumerate(shards):
            if over.is_set():
                return
            statements = [STEP.format(at + 1), *changes(tables, number, 1000 * at, turn)]
            await anyio.to_thread.run_sync(merging.on, server, *statements)


def changes(tables: list[str], number: int, base: int, turn: int) -> Iterator[str]:
    for table in tables:
        shard = f"{table}_{number}"
        yield f"INSERT INTO {shard} (id, v) VALUES ({base + 100 + turn}, {turn})"
        yield f"UPDATE {shard} SET v = v + 1 WHERE id = {base + turn % 40}"
        yield f"DELETE FROM {shard} WHERE id = {base + 90 + turn}"


MODES = pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])


@pytest.mark.also_tidb
@MODES
async def test_from_mariadb(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mariadb11_source: DatabaseServer,
    mode: str,
) -> None:
    await each_statement(merging_from(mariadb_source, mariadb11_source), mode, modern=True)


@pytest.mark.also_tidb
@MODES
async def test_from_mysql(
    merging_from: MergingFrom,
    mysql_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    mode: str,
) -> None:
    await each_statement(merging_from(mysql_source, mysql56_source), mode, modern=False)

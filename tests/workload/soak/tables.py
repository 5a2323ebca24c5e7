"""The tables of a soak: their columns, the rows written to them, their schema changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

SOURCE_SCHEMA, TARGET_SCHEMA = "soak", "merged"

BASE = (
    "id BIGINT PRIMARY KEY, v INT NOT NULL, at DATETIME, d DECIMAL(10,3),"
    " s VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin"
)
MIXED = (
    ", u VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, x BLOB, f DOUBLE, e"
    " ENUM('a','b','c') CHARACTER SET ascii COLLATE ascii_general_ci, m SET('k','l','m') CHARACTER"
    " SET ascii COLLATE ascii_general_ci, b BIT(9), y YEAR, w TIME(2), k DATE, z TIMESTAMP(6) NULL,"
    " n BIGINT UNSIGNED, h BINARY(8)"
)
CHARACTER_SET = "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"


@dataclass(frozen=True, slots=True)
class Table:
    """A target, and what its shards do.

    Attributes:
        columns: the columns at the start. Rows are written to these alone, whatever the schema
            changes add.
        changes: schema changes that all shards make in turn, again and again; each is a list of
            statements. ``{t}`` is the shard, ``{n}`` a number of it from 1, ``{moment}`` a time.
        keyed: whether it has a key.
    """

    name: str
    columns: str = BASE
    changes: tuple[tuple[str, ...], ...] = ()
    keyed: bool = True


def _alters(*actions: str) -> tuple[tuple[str, ...], ...]:
    return tuple((f"ALTER TABLE {{t}} {action}",) for action in actions)


TABLES = (
    Table(
        "moment",
        changes=(
            (
                "SET timestamp = {moment}",
                "ALTER TABLE {t} ADD c DATETIME DEFAULT now(), ADD e DATETIME(6) NOT NULL"
                " DEFAULT now(6)",
            ),
            ("ALTER TABLE {t} DROP c, DROP e",),
        ),
    ),
    Table(
        "stamp",
        changes=(
            (
                "SET timestamp = {moment}",
                "ALTER TABLE {t} ADD c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP"
                " ON UPDATE CURRENT_TIMESTAMP",
            ),
            ("SET timestamp = {moment}", "ALTER TABLE {t} MODIFY c DATETIME(3) NULL"),
            ("ALTER TABLE {t} DROP c",),
        ),
    ),
    Table(
        "zone",
        changes=(
            ("SET time_zone = '+0{n}:00'", "ALTER TABLE {t} MODIFY at TIMESTAMP NULL"),
            ("SET time_zone = '+0{n}:30'", "ALTER TABLE {t} MODIFY at DATETIME NULL"),
        ),
    ),
    Table("rounded", changes=_alters("MODIFY d DECIMAL(10,1)", "MODIFY d DECIMAL(10,3)")),
    Table(
        "cut",
        changes=_alters(
            "MODIFY s VARCHAR(7) CHARACTER SET latin1 COLLATE latin1_bin",
            "MODIFY s VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin",
        ),
    ),
    Table(
        "plain",
        changes=_alters(
            "ADD c INT NOT NULL DEFAULT 7 AFTER v",
            "MODIFY c BIGINT NOT NULL DEFAULT 8",
            "ADD INDEX c_v (c, v)",
            "CHANGE c g BIGINT NULL",
            "DROP INDEX c_v",
            "DROP g",
        ),
    ),
    Table(
        "mixed",
        BASE + MIXED,
        _alters("ADD INDEX u_f (u, f)", "DROP INDEX u_f", "MODIFY n BIGINT UNSIGNED FIRST"),
    ),
    Table("bag", "v INT NOT NULL, s VARCHAR(20)", keyed=False),
)


class Rows:
    """Makes the transactions of one shard's writer; `number` tells its rows from other shards'."""

    def __init__(self, number: int, shards: int, seed: int) -> None:
        self._number = number
        self._shards = shards
        self._random = Random(seed)
        self._next = 0

    def first(self, table: Table, shard: str, count: int) -> str:
        """Return an INSERT of the rows with which a shard begins."""
        self._next = max(self._next, count)
        return self._insert(table, shard, range(count))

    def transaction(self, table: Table, shard: str) -> Iterator[str]:
        """Yield the statements of the next transaction."""
        if not table.keyed:
            yield from self._keyless(shard)
            return
        choice = self._random.random()
        first, self._next = self._next, self._next + 3
        some = self._some()
        if choice < 0.02:
            self._next += 400
            yield "BEGIN"
            yield self._insert(table, shard, range(first, first + 400))
            yield "COMMIT"
        elif choice < 0.06:
            yield f"XA START '{self._number}.{first}'"
            yield self._insert(table, shard, range(first, first + 3))
            yield f"UPDATE {shard} SET v = v + 3 WHERE id = {some}"
            yield f"XA END '{self._number}.{first}'"
            yield f"XA PREPARE '{self._number}.{first}'"
            yield f"XA {'COMMIT' if choice < 0.05 else 'ROLLBACK'} '{self._number}.{first}'"
        elif choice < 0.12:
            yield f"REPLACE INTO {shard} {self._names(table)} VALUES {self._row(table, first // 2)}"
            yield (
                self._insert(table, shard, range(first // 3, first // 3 + 2))
                + " ON DUPLICATE KEY UPDATE v = v + 5"
            )
        elif choice < 0.18:
            # The key of a row changes, to one that no other row has.
            yield f"UPDATE {shard} SET id = {self._key(first)} WHERE id = {some}"
        elif choice < 0.24:
            yield "BEGIN"
            yield self._insert(table, shard, range(first, first + 1))
            yield "SAVEPOINT here"
            yield f"DELETE FROM {shard} WHERE id BETWEEN {some} AND {some + 900}"
            yield "ROLLBACK TO SAVEPOINT here"
            yield "COMMIT"
        else:
            yield "BEGIN"
            yield self._insert(table, shard, range(first, first + 3))
            yield f"UPDATE {shard} SET v = v + 1 WHERE id BETWEEN {some} AND {some + 400}"
            yield f"UPDATE {shard} SET d = d + 0.126, s = CONCAT('then ', id) WHERE id = {some}"
            yield f"UPDATE {shard} SET at = at + INTERVAL 1 HOUR WHERE id = {self._some()}"
            low = self._some()
            yield f"DELETE FROM {shard} WHERE id BETWEEN {low} AND {low + 200}"
            yield "COMMIT"

    def _keyless(self, shard: str) -> Iterator[str]:
        value = self._random.randrange(50)
        yield f"INSERT INTO {shard} VALUES ({value}, 'x'), ({value}, 'x'), ({value}, NULL)"
        yield f"UPDATE {shard} SET v = v + 1 WHERE v = {self._random.randrange(50)} LIMIT 1"
        yield f"DELETE FROM {shard} WHERE v = {self._random.randrange(50)} LIMIT 2"

    def _some(self) -> int:
        return self._key(self._random.randrange(max(1, self._next)))

    def _key(self, number: int) -> int:
        return number * self._shards + self._number

    def _insert(self, table: Table, shard: str, numbers: range) -> str:
        rows = ",".join(self._row(table, number) for number in numbers)
        return f"INSERT INTO {shard} {self._names(table)} VALUES {rows}"

    def _names(self, table: Table) -> str:
        if not table.keyed:
            return "(v, s)"
        return "(id, v, at, d, s" + (
            ", u, x, f, e, m, b, y, w, k, z, n, h)" if MIXED in table.columns else ")"
        )

    def _row(self, table: Table, number: int) -> str:
        if not table.keyed:
            return f"({number % 50}, 'first')"
        key, day = self._key(number), 1 + number % 28
        base = f"{key}, {number}, '2026-03-{day:02} 02:30:15', {number}.126, 'a text of {key}'"
        if MIXED not in table.columns:
            return f"({base})"
        return (
            f"({base}, '\u00fc \U0001f600 {key}', X'00{number % 256:02x}27', {number} / 7,"
            f" '{'abc'[number % 3]}', '{('', 'k', 'k,m')[number % 3]}', b'{number % 500:b}',"
            f" {1990 + number % 100}, '-{number % 800}:05:06.78', '2026-02-{day:02}',"
            f" '2026-03-{day:02} 01:02:03.000456', {2**64 - 1 - number}, X'{number:016x}')"
        )

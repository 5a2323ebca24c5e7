"""Rows of nine columns, inserted 100 at a time; the same rows as a file to load."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from benchmarks.estate import Backlog, Estate, Table, cursors_of

ROWS_PER_INSERT = 100
_KEYS = 2_000_000_000
"""All keys are below this; each shard has a range of its own."""
_FEWEST_RANGES = 20
KEYS_OF_A_SHARD = _KEYS // _FEWEST_RANGES
"""The size of a range, with no more shards than that."""

COLUMNS = (
    "(id INT NOT NULL PRIMARY KEY, customer INT NOT NULL, quantity SMALLINT UNSIGNED,"
    " status VARCHAR(20) NOT NULL, price DECIMAL(12,2) NOT NULL, created DATETIME NOT NULL,"
    " weight DOUBLE, name VARCHAR(100) NOT NULL, note TEXT)"
)


def orders(shards: int, name: str = "orders") -> Table:
    """The table, in so many shards at each source."""
    return Table(name, COLUMNS, shards)


def write_orders(estate: Estate, rows: int, lines: Path | None = None) -> Backlog:
    """Make the shards, and insert orders 100 at a time, in turn into all of them.

    Each insert is a transaction. ``lines`` is a file for the same rows, as `LOAD DATA` reads them.
    """
    estate.create_shards()
    starts = estate.ends()
    shards = estate.shards()
    inserts = -(-rows // ROWS_PER_INSERT)
    with ExitStack() as resources:
        cursors = cursors_of(estate.servers, resources)
        file = resources.enter_context(lines.open("w")) if lines else None
        for insert in range(inserts):
            place = insert % len(shards)
            first = place * (_KEYS // max(len(shards), _FEWEST_RANGES))
            first += insert // len(shards) * ROWS_PER_INSERT
            texts = [order(first + n) for n in range(ROWS_PER_INSERT)]
            values = "),(".join("'" + "','".join(text) + "'" for text in texts)
            shard = shards[place]
            cursors[shard.server.port].execute(f"INSERT INTO {shard.name} VALUES ({values})")
            if file is not None:
                file.writelines("\t".join(text) + "\n" for text in texts)
    return Backlog(estate, starts, estate.ends(), inserts * ROWS_PER_INSERT)


def write_orders_at_once(estate: Estate, rows: int) -> Backlog:
    """Make the shards, and insert orders into the first one, all in one transaction."""
    estate.create_shards()
    starts = estate.ends()
    estate.servers[0].execute(select_orders(estate.shards()[0].name, 0, rows))
    return Backlog(estate, starts, estate.ends(), rows)


def select_orders(table: str, first: int, rows: int) -> str:
    """The statement by which a MariaDB makes up orders by itself, for keys from ``first`` on."""
    return (
        f"INSERT INTO {table} SELECT {first} + seq, seq % 1000003, seq % 1000,"
        " ELT(1 + seq % 5, 'new', 'paid', 'packed', 'shipped', 'returned'),"
        " seq % 10000000 / 100, '2024-01-01' + INTERVAL seq % 31536000 SECOND,"
        " seq / 4096, CONCAT('Customer é ', HEX(seq)),"
        " REPEAT(CONCAT('order ', seq, ', to be left at the door'), seq % 3)"
        f" FROM shard.seq_1_to_{rows}"
    )


def order(number: int) -> tuple[str, ...]:
    """One row as texts; the same for the same number, and with nothing to escape."""
    mixed = number * 2654435761 % 4294967296
    second, minute, hour = mixed % 60, mixed // 60 % 60, mixed // 3600 % 24
    date = f"2024-{mixed % 12 + 1:02d}-{mixed // 7 % 28 + 1:02d}"
    return (
        str(number),
        str(mixed % 1_000_000),
        str(mixed % 1000),
        ("new", "paid", "packed", "shipped", "returned")[mixed % 5],
        f"{mixed % 10_000_000 / 100:.2f}",
        f"{date} {hour:02d}:{minute:02d}:{second:02d}",
        repr(mixed / 4096),
        f"Customer é {mixed:x}",
        f"order {number}, to be left at the door of house {mixed % 997}" * (mixed % 3),
    )

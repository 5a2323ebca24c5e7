"""Rows of 60 columns and 2 KB, and BLOBs of 1 MB; the same rows as files to load."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from benchmarks.estate import Backlog, Estate, Table

WIDE_ROWS_PER_INSERT = 50
BLOB_BYTES = 1 << 20
_KINDS = (
    ("n", "INT", 25),
    ("b", "BIGINT UNSIGNED", 5),
    ("d", "DECIMAL(14,4)", 5),
    ("t", "DATETIME", 5),
    ("s", "VARCHAR(200)", 19),
)
_ESCAPES = {ord("\\"): b"\\\\", ord("\t"): b"\\t", ord("\n"): b"\\n", 0: b"\\0"}


def wide_rows(shards: int) -> Table:
    """60 columns: the key, integers, decimals, times and texts."""
    columns = [f"{kind}{n} {type_}" for kind, type_, count in _KINDS for n in range(count)]
    return Table("wide", f"(id INT NOT NULL PRIMARY KEY, {', '.join(columns)})", shards)


def blobs(shards: int) -> Table:
    """Documents of 1 MB each, of bytes that look like nothing in particular."""
    return Table(
        "document",
        "(id INT NOT NULL PRIMARY KEY, name VARCHAR(50) NOT NULL, body LONGBLOB NOT NULL)",
        shards,
    )


def write_wide_rows(estate: Estate, rows: int, lines: Path) -> Backlog:
    """Make the shards, and insert wide rows, 50 at a time, in turn into all of them."""

    def row(number: int) -> tuple[str, bytes]:
        texts = _wide_row(number)
        return "','".join(texts).join("''"), "\t".join(texts).encode()

    return _write(estate, rows, WIDE_ROWS_PER_INSERT, row, lines)


def write_blobs(estate: Estate, rows: int, lines: Path) -> Backlog:
    """Make the shards, and insert documents one by one, in turn into all of them."""
    randomness = random.Random(3)

    def row(number: int) -> tuple[str, bytes]:
        body, name = randomness.randbytes(BLOB_BYTES), f"document {number}"
        return f"{number},'{name}',x'{body.hex()}'", f"{number}\t{name}\t".encode() + _escaped(body)

    return _write(estate, rows, 1, row, lines)


def _write(
    estate: Estate, rows: int, each: int, row: Callable[[int], tuple[str, bytes]], lines: Path
) -> Backlog:
    """``row`` gives the values of a row as SQL, and its line of the file."""
    estate.create_shards()
    starts = estate.ends()
    shards = estate.shards()
    (server,) = estate.servers
    with server.connect() as connection, connection.cursor() as cursor, lines.open("wb") as file:
        for number, first in enumerate(range(0, rows, each)):
            made = [row(first + n) for n in range(min(each, rows - first))]
            values = ",".join(f"({values})" for values, _ in made)
            cursor.execute(f"INSERT INTO {shards[number % len(shards)].name} VALUES {values}")
            file.writelines(line + b"\n" for _, line in made)
    return Backlog(estate, starts, estate.ends(), rows)


def _wide_row(number: int) -> list[str]:
    """One row as texts, with nothing to escape; the same for the same number."""
    mixed = number * 2654435761 % 4294967296
    clock = f"{mixed % 24:02d}:{mixed // 24 % 60:02d}:{mixed // 1440 % 60:02d}"
    return [
        str(number),
        *(str((mixed >> place % 16 + 1) - place) for place in range(25)),
        *(str(mixed * 1000003 + place) for place in range(5)),
        *(f"{(mixed + place) / 10000:.4f}" for place in range(5)),
        *(f"2024-{place + 1:02d}-{mixed % 28 + 1:02d} {clock}" for place in range(5)),
        *(f"{place} {mixed:x} " * 7 for place in range(19)),
    ]


def _escaped(value: bytes) -> bytes:
    """A field of a file for LOAD DATA."""
    for sign, text in _ESCAPES.items():
        value = value.replace(bytes([sign]), text)
    return value

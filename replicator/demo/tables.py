"""The definitions of the demo's tables: the shards, and the values of their rows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from replicator.mysql.names import TableName

Row = tuple[object, ...]

SOURCES = ("shop-east", "shop-west")
SCHEMAS = ("shop_1", "shop_2")
TARGET_SCHEMA = "shop"
META_SCHEMA = "replicator_meta"

_FIRST_DAY = datetime(2020, 1, 1)
_WORDS = (
    "Zoë",
    "O'Hara",
    "Łukasz",
    "山田",
    "new\nline",
    "back\\slash",
    "tab\tstop",
    "🚲",
    "",
    "plain",
)


@dataclass(frozen=True)
class Entity:
    """One kind of record, stored in shards ``<name>_0``, ``<name>_1`` … and merged into ``<name>``.

    ``definition`` has the columns and keys as in CREATE TABLE. ``row`` makes the values of all
    ``columns`` from a number that is unique in the estate; ``change`` makes new values for some
    columns.
    """

    name: str
    definition: str
    columns: tuple[str, ...]
    shards: int
    keyed: bool
    row: Callable[[random.Random, int], Row]
    change: Callable[[random.Random], dict[str, object]]

    def shard_tables(self, schema: str) -> tuple[str, ...]:
        """The quoted names of its shards in one schema."""
        return tuple(
            TableName(schema, f"{self.name}_{number}").quoted for number in range(self.shards)
        )

    @property
    def target_table(self) -> str:
        """The quoted name of the table that all shards are merged into."""
        return TableName(TARGET_SCHEMA, self.name).quoted


def sql(*parts: str) -> str:
    """Return a statement made of fixed words, quoted names and placeholders."""
    return " ".join(parts)


def _order(rng: random.Random, number: int) -> Row:
    return (
        number,
        f"{rng.choice(_WORDS)} {rng.randrange(1000)}",
        rng.choice(("new", "paid", "shipped", "cancelled")),
        Decimal(rng.randrange(10**8)) / 100,
        rng.choice((None, rng.uniform(0, 1e6))),
        rng.choice(("", "gift", "express", "gift,express")),
        _moment(rng),
        rng.choice((None, *_WORDS)),
    )


def _order_change(rng: random.Random) -> dict[str, object]:
    return {
        "state": rng.choice(("new", "paid", "shipped", "cancelled")),
        "amount": Decimal(rng.randrange(10**8)) / 100,
        "note": rng.choice((None, *_WORDS)),
    }


def _user(rng: random.Random, number: int) -> Row:
    return (
        number,
        rng.choice(("de", "fr", "us", "jp")),
        f"user{number}@example.com",
        rng.choice((None, date(1950, 1, 1) + timedelta(days=rng.randrange(20_000)))),
        rng.randrange(-(2**63), 2**63),
        rng.choice((None, rng.randbytes(rng.randrange(16)) + b"\x00\\\n\t\xff")),
        json.dumps({"theme": rng.choice(_WORDS), "size": rng.randrange(9)}, ensure_ascii=False),
        rng.randrange(2),
    )


def _user_change(rng: random.Random) -> dict[str, object]:
    return {
        "balance": rng.randrange(-(2**63), 2**63),
        "avatar": rng.choice((None, rng.randbytes(8))),
        "active": rng.randrange(2),
    }


def _event(rng: random.Random, number: int) -> Row:
    # There are few different rows, on purpose: a table without a key must keep the number of equal
    # rows.
    return (
        rng.choice(("click", "view", "buy")),
        _FIRST_DAY + timedelta(days=rng.randrange(30)),
        rng.choice((None, rng.randrange(20))),
        rng.choice((None, b"\x00\x01", b"payload")),
    )


def _event_change(rng: random.Random) -> dict[str, object]:
    return {"worth": rng.randrange(20)}


def _moment(rng: random.Random) -> datetime:
    return _FIRST_DAY + timedelta(microseconds=rng.randrange(6 * 365 * 86_400 * 10**6))


ORDERS = Entity(
    "orders",
    "id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer VARCHAR(60) NOT NULL, "
    "state ENUM('new','paid','shipped','cancelled') NOT NULL, amount DECIMAL(12,2) NOT NULL, "
    "weight DOUBLE, flags SET('gift','express') NOT NULL, placed DATETIME(6) NOT NULL, note TEXT, "
    "changed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), "
    "KEY (customer)",
    ("id", "customer", "state", "amount", "weight", "flags", "placed", "note"),
    shards=4,
    keyed=True,
    row=_order,
    change=_order_change,
)
USERS = Entity(
    "users",
    "id INT UNSIGNED NOT NULL, country CHAR(2) CHARACTER SET latin1 NOT NULL, "
    "email VARCHAR(100) NOT NULL, born DATE, balance BIGINT NOT NULL, avatar VARBINARY(64), "
    "settings JSON NOT NULL, active BIT(1) NOT NULL, PRIMARY KEY (id, country)",
    ("id", "country", "email", "born", "balance", "avatar", "settings", "active"),
    shards=2,
    keyed=True,
    row=_user,
    change=_user_change,
)
EVENTS = Entity(
    "events",
    "kind VARCHAR(10) NOT NULL, happened DATETIME NOT NULL, worth INT, payload BLOB",
    ("kind", "happened", "worth", "payload"),
    shards=2,
    keyed=False,
    row=_event,
    change=_event_change,
)
ENTITIES = (ORDERS, USERS, EVENTS)

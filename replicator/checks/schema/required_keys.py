"""Checks whether the target refuses to create a table without a key, as some managed servers do.

``sql_require_primary_key`` of MySQL requires a primary key (MySQL manual, "Server System
Variables"), ``innodb_force_primary_key`` of MariaDB a key that identifies every row (MariaDB KB,
"InnoDB System Variables").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.agreement import Shard, members_listed
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.schema.structure.structure import Table

_PLACE = CheckedPart("target")
_MYSQL, _MARIADB = "sql_require_primary_key", "innodb_force_primary_key"
_GIVES_KEYS = "sql_generate_invisible_primary_key"
_NAMES = (_MYSQL, _MARIADB, _GIVES_KEYS)


async def check_required_key(
    connection: Connection, name: TableName, like: Shard, shards: Sequence[Shard], *, copies: bool
) -> list[CheckResult]:
    """Check whether the missing target `name` can be created like the shard `like`.

    Without a full copy, the failure is a warning: a CREATE TABLE in the binlog may have a key.
    Raises DatabaseUnavailableError, the server's error.
    """
    rows = await connection.fetch_once(
        "SHOW SESSION VARIABLES WHERE Variable_name IN (%s, %s, %s)", _NAMES
    )
    setting = required_by({str(key).lower(): str(value) for key, value in rows}, like.table)
    if not setting:
        return []
    without = [shard for shard in shards if lacks_key(shard.table, setting)] or [like]
    result = _PLACE.failed if copies else _PLACE.warning
    return [
        result(
            "target_keys",
            f"the target refuses to create {name}: {setting} is ON there, and"
            f" {members_listed(without)} has no primary key",
            f"Execute on the target: SET GLOBAL {setting} = OFF; and set the same in its my.cnf",
            f"Or create {name} by hand, with a primary key that takes the rows of all shards",
            "Or add a primary key to these shards",
        )
    ]


def required_by(values: Mapping[str, str], table: Table) -> str:
    """Return the setting because of which a server refuses a table; empty if it creates the table.

    `values`: the session's variables, names in lower case.
    """
    if _is_on(values, _MYSQL) and not _is_on(values, _GIVES_KEYS) and lacks_key(table, _MYSQL):
        return _MYSQL
    if _is_on(values, _MARIADB) and lacks_key(table, _MARIADB):
        return _MARIADB
    return ""


def lacks_key(table: Table, setting: str) -> bool:
    """Return whether a table has no key of the kind that a setting requires."""
    if setting == _MARIADB:
        return table.row_key is None
    return all(key.name != "PRIMARY" for key in table.keys)


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "OFF").upper() in {"ON", "1"}

"""The session settings at a source that a statement's event does not contain.

They are queried whenever the binlog is requested. Servers only write settings into an event that a
replica needs: MySQL's Query_log_event, MariaDB's, "Q_… status variables".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pymysql.err
from pymysql.constants import ER

from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName
from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.mysql.session_context.statement_context import SYSTEM, StatementContext

_MONTH = 30 * 24 * 3600
_MOMENTS = range(_MONTH, 2**31 - _MONTH, _MONTH)
"""Seconds since 1970, one in each month that a TIMESTAMP can have."""

NATIVE_FOREIGN_KEYS = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"
"""A server that has this variable, with the value OFF, logs the rows that its foreign keys
change."""


@dataclass(frozen=True, slots=True)
class SessionDefaults:
    """Defaults of a server's sessions, and the names of its collations by their numbers.

    Attributes:
        system_zone: the offset of the time zone of the server's host; empty if it varies.
        timestamps_logged: whether each event has explicit_defaults_for_timestamp as a flag.
        databases: the default collations of its databases.
        charsets: the default collations of its charsets.
        sequences: its sequences (MariaDB), as far as the account sees them.
        views: its views of any kind, as far as the account sees them.
        logs_cascades: whether it logs the changes of rows by its foreign keys
            (`replicator.ddl.analysis.side_effects`).
    """

    mariadb: bool = False
    time_zone: str = SYSTEM
    system_zone: str = ""
    explicit_timestamp_defaults: bool | None = None
    timestamps_logged: bool = False
    collations: Mapping[int, str] = field(default_factory=dict)
    databases: Mapping[str, str] = field(default_factory=dict)
    charsets: Mapping[str, str] = field(default_factory=dict)
    logs_cascades: bool = False
    sequences: frozenset[TableName] = frozenset()
    views: frozenset[TableName] = frozenset()

    def complete(self, context: StatementContext) -> StatementContext:
        """Return the context with the server's values for the settings that its event left out."""
        zone: str | None = context.time_zone or self.time_zone
        if zone == SYSTEM:
            zone = self.system_zone or context.time_zone
        explicit = context.explicit_timestamp_defaults
        if explicit is None:
            explicit = False if self.timestamps_logged else self.explicit_timestamp_defaults
        _, connection, server = context.collation_ids or (0, 0, 0)
        return replace(
            context,
            mariadb=self.mariadb,
            time_zone=zone,
            explicit_timestamp_defaults=explicit,
            connection_collation=self.collations.get(connection, ""),
            server_collation=self.collations.get(server, ""),
            charset_collations=tuple(
                self.collations[number]
                for number in context.charset_collation_ids
                if number in self.collations
            ),
        )


def session_defaults(connection: Any) -> SessionDefaults:
    """Query an open PyMySQL connection. Raises pymysql.MySQLError."""
    with connection.cursor() as cursor, parsing_answer("the defaults of its sessions"):
        cursor.execute(
            "SELECT VERSION(), @@global.time_zone, @@global.explicit_defaults_for_timestamp"
        )
        version, zone, explicit = cursor.fetchone()
        mariadb = kind_of(str(version)) is ServerKind.MARIADB
        cursor.execute(
            "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME"
            " FROM information_schema.SCHEMATA"
        )
        databases = {str(name): _full(charset, default) for name, charset, default in cursor}
        cursor.execute(
            "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"
        )
        charsets = {str(name).lower(): _full(name, default) for name, default in cursor}
        return SessionDefaults(
            mariadb=mariadb,
            time_zone=str(zone),
            system_zone=_system_zone(cursor),
            explicit_timestamp_defaults=bool(int(explicit)),
            timestamps_logged=mariadb and _settable(cursor),
            collations=_collations(cursor),
            databases=databases,
            charsets=charsets,
            logs_cascades=_logs_cascades(cursor),
            sequences=_of_type(cursor, "SEQUENCE"),
            views=_of_type(cursor, "%VIEW"),
        )


def offset_of(seconds: Iterable[int]) -> str:
    """Return the SQL offset of a time zone with these offsets in seconds; empty if they differ."""
    found = set(seconds)
    if len(found) != 1:
        return ""
    minutes, rest = divmod(abs(only := found.pop()), 60)
    return "" if rest else f"{'-' if only < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _system_zone(cursor: Any) -> str:
    # The name of the zone (@@system_time_zone) is ambiguous: CET may have a summer time or not.
    cursor.execute("SET time_zone = 'SYSTEM'")
    differences = (
        f"TIMESTAMPDIFF(SECOND, '1970-01-01', FROM_UNIXTIME({moment})) - {moment}"
        for moment in _MOMENTS
    )
    cursor.execute(f"SELECT {','.join(differences)}")
    found = offset_of(int(seconds) for seconds in cursor.fetchone())
    cursor.execute("SET time_zone = DEFAULT")
    return found


def _logs_cascades(cursor: Any) -> bool:
    cursor.execute(NATIVE_FOREIGN_KEYS)
    return [value for _, value in cursor] == ["OFF"]


def _settable(cursor: Any) -> bool:
    """Return whether sessions can set explicit_defaults_for_timestamp; if so, a MariaDB logs it."""
    try:
        cursor.execute(
            "SET SESSION explicit_defaults_for_timestamp = @@explicit_defaults_for_timestamp"
        )
    except pymysql.err.MySQLError as error:
        if error_code(error) != ER.INCORRECT_GLOBAL_LOCAL_VAR:
            raise
        return False
    return True


def _collations(cursor: Any) -> dict[int, str]:
    try:
        # A MariaDB since 10.10: one row of COLLATIONS stands for several collations.
        cursor.execute(
            "SELECT ID, CHARACTER_SET_NAME, FULL_COLLATION_NAME"
            " FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
        )
    except pymysql.err.MySQLError as error:
        if error_code(error) != ER.BAD_FIELD_ERROR:
            raise
        cursor.execute(
            "SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS"
        )
    return {int(number): _full(charset, name) for number, charset, name in cursor}


def _of_type(cursor: Any, pattern: str) -> frozenset[TableName]:
    cursor.execute(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE LIKE %s",
        (pattern,),
    )
    return frozenset(TableName(str(schema), str(name)) for schema, name in cursor)


def _full(charset: object, collation: object) -> str:
    """Return a collation's name with its charset's name, which a MariaDB may leave out."""
    start, name = str(charset).lower(), str(collation).lower()
    return name if name == start or name.startswith(f"{start}_") else f"{start}_{name}"

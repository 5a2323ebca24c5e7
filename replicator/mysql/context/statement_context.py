"""The context of a statement: what its session had set at the source, and what it means there.

A statement does the same on another server only where these are the same. Most of it stands in the
status variables of its query event; what they leave out is the source's own default
(`replicator.mysql.context.session_defaults`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.mysql.connection.session_settings import UTC
from replicator.mysql.context.sql_modes import (
    ANSI_QUOTES,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    without_reading,
)

SYSTEM = "SYSTEM"
"""The time zone of the host that a server runs on."""


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The settings that a statement ran with; None or empty where nobody told them.

    ``microseconds`` are those of its moment, whose seconds are the event's timestamp.
    ``collation_ids`` are the session's: of the client, of the connection, of the server. Their
    numbers are the source's own, so ``connection_collation`` and ``server_collation`` have the
    names. ``mariadb``: the source is a MariaDB, where some bits of ``sql_mode`` and some modes mean
    something else. ``explicit_timestamp_defaults`` is explicit_defaults_for_timestamp. With a
    ``time_zone`` of `SYSTEM` the statement has used a zone whose offset could not be found out;
    with None it has used none, nor is that of its server known.

    ``charset_collation_ids`` are the collations that charsets have by default in the session, where
    those differ from the server's (MySQL's default_collation_for_utf8mb4, MariaDB's
    character_set_collations), ``charset_collations`` their names. ``time_names`` is the number of
    lc_time_names, the language of months and days, which the servers agree on. ``unread_code`` is
    that of a status variable that is not known here: it and what stands behind it could not be
    read.
    """

    sql_mode: int | None = None
    time_zone: str | None = None
    microseconds: int = 0
    collation_ids: tuple[int, int, int] | None = None
    explicit_timestamp_defaults: bool | None = None
    mariadb: bool | None = None
    connection_collation: str = ""
    server_collation: str = ""
    charset_collation_ids: tuple[int, ...] = ()
    charset_collations: tuple[str, ...] = ()
    time_names: int = 0
    unread_code: int | None = None

    @property
    def ansi_quotes(self) -> bool:
        """Whether "a" is a name."""
        return bool((self.sql_mode or 0) & ANSI_QUOTES)

    @property
    def no_backslash_escapes(self) -> bool:
        """Whether a backslash in a string is nothing but itself."""
        return bool((self.sql_mode or 0) & NO_BACKSLASH_ESCAPES)

    @property
    def brackets_quote(self) -> bool:
        """Whether [a] is a name, as for a MariaDB in the mode MSSQL."""
        return bool(self.mariadb and (self.sql_mode or 0) & MSSQL)

    def of_server_text(self, *, keeps_zone: bool = False) -> StatementContext:
        """The context in which a text of SHOW CREATE TABLE does what this statement has done.

        The task reads such texts in UTC and without modes: the default of a TIMESTAMP is in UTC.
        ``keeps_zone``: the statement converts values by its own time zone.
        """
        return replace(
            self,
            sql_mode=without_reading(self.sql_mode or 0, mariadb=bool(self.mariadb)),
            time_zone=self.time_zone if keeps_zone else UTC,
            explicit_timestamp_defaults=True,
        )


NO_CONTEXT = StatementContext()
"""Of statements that came from no binlog."""

"""The context of a statement: the session's settings at the source, and their meaning there.

A statement has the same effect on another server only if these settings are the same. Most of them
are in the status variables of its query event; for the others, the source's own defaults apply
(`replicator.mysql.session_context.session_defaults`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.mysql.connection.session_settings import UTC
from replicator.mysql.session_context.sql_modes import (
    ANSI_QUOTES,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    without_reading,
)

SYSTEM = "SYSTEM"
"""The time zone of the host that a server runs on."""


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The settings with which a statement ran; None or empty if they are unknown.

    Attributes:
        time_zone: `SYSTEM` if the statement used a zone whose offset is unknown; None if it used no
            zone and its server's zone is not known either.
        microseconds: the fraction of its time, whose seconds are the event's timestamp.
        collation_ids: the session's collations: of the client, the connection, the server. The
            numbers are the source's own; ``connection_collation`` and ``server_collation`` have the
            names.
        explicit_timestamp_defaults: explicit_defaults_for_timestamp.
        mariadb: whether the source is a MariaDB, where some bits of ``sql_mode`` and some modes
            have another meaning.
        charset_collation_ids: the session's default collations of charsets that differ from the
            server's (MySQL's default_collation_for_utf8mb4, MariaDB's character_set_collations);
            ``charset_collations`` has their names.
        time_names: the number of lc_time_names, the language of months and days; all servers have
            the same numbers.
        unread_code: the code of an unknown status variable; it and the variables after it could not
            be read.
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
        """Whether a backslash in a string is an ordinary character."""
        return bool((self.sql_mode or 0) & NO_BACKSLASH_ESCAPES)

    @property
    def brackets_quote(self) -> bool:
        """Whether [a] is a name, as for a MariaDB in the mode MSSQL."""
        return bool(self.mariadb and (self.sql_mode or 0) & MSSQL)

    def of_server_text(self, *, keeps_zone: bool = False) -> StatementContext:
        """Return the context in which a text of SHOW CREATE TABLE has the effect of this statement.

        The task reads such texts in UTC and without modes: the default of a TIMESTAMP is in UTC.
        ``keeps_zone``: whether the statement converts values by its own time zone.
        """
        return replace(
            self,
            sql_mode=without_reading(self.sql_mode or 0, mariadb=bool(self.mariadb)),
            time_zone=self.time_zone if keeps_zone else UTC,
            explicit_timestamp_defaults=True,
        )


NO_CONTEXT = StatementContext()
"""The context of statements that are not from a binlog."""

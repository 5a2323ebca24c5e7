"""The variables that every session sets, since a server may have other defaults."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.mysql.names import quote

UTC = "+00:00"
"""Value of ``time_zone``, by which TIMESTAMP columns are read and written."""

NO_SELECT_LIMIT = "18446744073709551615"
"""Value of ``sql_select_limit``: a server's own limit would silently cut off every query."""

SNAPSHOTS = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""A transaction reads the rows that exist at its first read, and its reads lock nothing."""

_TIDB_SETTINGS = (
    "/*T! ,SESSION tidb_txn_mode='pessimistic',SESSION allow_auto_random_explicit_insert=1 */"
)
"""Settings of TiDB, as a comment that other servers ignore (its page "Comment Syntax"); they follow
the other assignments of a SET. Locks are taken at once, whatever the cluster's default is, and an
AUTO_RANDOM column accepts the values of the shards."""
_MARIADB_SETTINGS = (
    "/*M!100304 ,SESSION system_versioning_alter_history='KEEP'"
    ",SESSION system_versioning_asof=DEFAULT */"
)
"""Settings of MariaDB in the same form (its page "System-Versioned Tables"). Changes of the source
can also be made here although the table keeps its former rows. Tables are read as they are now,
even if the server shows its clients the rows of a moment in the past."""
_AS_BY_DEFAULT = (
    ",SESSION autocommit=1,SESSION completion_type=0"
    ",SESSION sql_big_selects=1,SESSION sql_safe_updates=0"
    "/*M!100101 ,SESSION max_statement_time=0 */ /*!50708 ,SESSION max_execution_time=0 */"
)
"""Settings in the same form. A server may have settings that would refuse a query of many rows, or
a change of tables without a key, or end a long query or write. Each statement is a transaction,
except between BEGIN and COMMIT: drivers rely on a MySQL's greeting about this, and its own default
may differ afterwards. (The servers' manuals, those variables. MariaDB ignores comments for versions
of MySQL from 5.7 on.)"""
GENERATED_KEYS = "SHOW VARIABLES LIKE 'show_gipk_in_create_table_and_information_schema'"
"""Query whether a MySQL shows the primary keys that it generated for tables; its events have them
in any case (its manual, "Generated Invisible Primary Keys"). Other servers return no row."""

SHOW_GENERATED_KEYS = "SET SESSION show_gipk_in_create_table_and_information_schema=ON"


WARNINGS_KEPT = 1000
"""Number of warnings of a statement that a session must keep if rows are written."""


def keep_warnings(kept: int, wanted: int) -> str:
    """Return the statement that lets a session keep enough warnings; empty if it does already.

    MySQL 8.4 and newer require a separate privilege, SESSION_VARIABLES_ADMIN, and keep enough by
    default (manual, "max_error_count"). So the statement is only used if somebody has lowered this
    number.
    """
    return f"SET SESSION max_error_count={wanted}" if kept < wanted else ""


def set_session(settings: Mapping[str, str]) -> str:
    """Return the statement that sets these variables, whose values are SQL, for a session."""
    assignments = ",".join(f"SESSION {quote(name)}={value}" for name, value in settings.items())
    return f"SET {assignments}{_TIDB_SETTINGS}{_MARIADB_SETTINGS}{_AS_BY_DEFAULT}"

"""What every session sets: variables whose defaults a server's owner may have changed."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.mysql.names import quote

UTC = "+00:00"
"""For ``time_zone``: TIMESTAMP columns are read and written by it."""

NO_SELECT_LIMIT = "18446744073709551615"
"""For ``sql_select_limit``: with a server's own, every query would be cut off without a word."""

SNAPSHOTS = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""A transaction reads what was there at its first read, and locks nothing by that."""

_TIDB_SETTINGS = (
    "/*T! ,SESSION tidb_txn_mode='pessimistic',SESSION allow_auto_random_explicit_insert=1 */"
)
"""What goes behind the other assignments of a SET: a comment but for TiDB (its page "Comment
Syntax"). Locks hold when they are taken, whatever the cluster's default, and an AUTO_RANDOM column
takes the values that the shards have."""
_MARIADB_SETTINGS = (
    "/*M!100304 ,SESSION system_versioning_alter_history='KEEP'"
    ",SESSION system_versioning_asof=DEFAULT */"
)
"""As above, for MariaDB (its page "System-Versioned Tables"): what was changed at the source can be
changed here, too, though the table keeps its former rows; and tables are read as they are now,
where the server shows its clients the rows of a moment in the past."""
_AS_BY_DEFAULT = (
    ",SESSION autocommit=1,SESSION completion_type=0"
    ",SESSION sql_big_selects=1,SESSION sql_safe_updates=0"
    "/*M!100101 ,SESSION max_statement_time=0 */ /*!50708 ,SESSION max_execution_time=0 */"
)
"""As above: a server may have settings for others that would refuse a query of many rows, or a
change of tables without a key, or end a query or a write of rows that takes its time. And each
statement is a transaction, but between BEGIN and COMMIT: drivers believe what a MySQL says of that
in its greeting, which is before its own default counts. (The servers' manuals, those variables.
MariaDB takes no comments for versions of MySQL from 5.7 on.)"""
GENERATED_KEYS = "SHOW VARIABLES LIKE 'show_gipk_in_create_table_and_information_schema'"
"""Tells whether a MySQL shows the primary keys that it gave tables itself, which stand in its
events in any case (its manual, "Generated Invisible Primary Keys"); no row elsewhere."""

SHOW_GENERATED_KEYS = "SET SESSION show_gipk_in_create_table_and_information_schema=ON"


WARNINGS_KEPT = 1000
"""Warnings of a statement that its session must keep, where rows are written."""


def keep_warnings(kept: int, wanted: int) -> str:
    """The statement that lets a session keep so many warnings; empty where it keeps them already.

    MySQL 8.4 and newer ask for a privilege of their own, SESSION_VARIABLES_ADMIN, and keep enough
    by default (manual, "max_error_count"), so it is only used where somebody has lowered that.
    """
    return f"SET SESSION max_error_count={wanted}" if kept < wanted else ""


def set_session(settings: Mapping[str, str]) -> str:
    """The statement that gives these variables their values, which are SQL, for a session."""
    assignments = ",".join(f"SESSION {quote(name)}={value}" for name, value in settings.items())
    return f"SET {assignments}{_TIDB_SETTINGS}{_MARIADB_SETTINGS}{_AS_BY_DEFAULT}"

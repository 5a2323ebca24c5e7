"""The kinds of servers, which differ in their binlogs, GTIDs, modes and statements."""

from __future__ import annotations

from enum import StrEnum


class ServerKind(StrEnum):
    """A kind of server; the value is its name in messages."""

    MARIADB = "MariaDB"
    MYSQL_BEFORE_8 = "MySQL before 8.0"
    MYSQL = "MySQL"
    TIDB = "TiDB"


def kind_of(version: str) -> ServerKind:
    """Return the kind of a server from ``VERSION()``; version_comment may be appended."""
    text = version.lower()
    if "tidb" in text:
        return ServerKind.TIDB
    if "mariadb" in text:
        return ServerKind.MARIADB
    return ServerKind.MYSQL_BEFORE_8 if text.startswith("5.") else ServerKind.MYSQL

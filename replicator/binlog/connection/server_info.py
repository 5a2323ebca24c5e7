"""The kind of server that a source is, and its binlog settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from replicator.binlog.errors import BinlogError
from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.server.identity import ServerIdentity
from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.mysql.session_context.session_defaults import SessionDefaults

VARIABLES_SQL: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'server_id', "
    "'binlog_checksum', 'gtid_mode', 'server_uuid', 'lower_case_table_names')"
)
"""The variables that `parse_server_info` reads. Unknown names give no row."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server and its global binlog settings; unknown settings are empty.

    Attributes:
        version: (major, minor, patch).
        checksum, gtid_mode: as in SHOW VARIABLES, in upper case.
        folds_names: whether the server ignores case in names of tables and databases
            (`replicator.mysql.server.identity`).
        session: defaults of its sessions.
    """

    kind: ServerKind
    version: tuple[int, ...]
    server_id: int
    server_uuid: str
    checksum: str
    gtid_mode: str
    folds_names: bool
    session: SessionDefaults = field(default_factory=SessionDefaults)

    @property
    def mariadb(self) -> bool:
        """Whether it is a MariaDB; otherwise it is a MySQL."""
        return self.kind is ServerKind.MARIADB

    @property
    def identity(self) -> ServerIdentity:
        """The values that distinguish the server from others."""
        return ServerIdentity(self.server_id, self.server_uuid, self.folds_names)

    @property
    def heeds_column_references(self) -> bool:
        """Whether REFERENCES after a column makes a foreign key; other servers ignore it."""
        return self.version >= ((10, 5) if self.mariadb else (9, 0))


def server_info(connection: Any) -> ServerInfo:
    """Read the server's properties over an open PyMySQL connection, without session defaults.

    Raises pymysql.MySQLError, and BinlogError for an unreadable version.
    """
    with connection.cursor() as cursor:
        cursor.execute(VARIABLES_SQL)
        with parsing_answer("its variables"):
            return parse_server_info({str(name).lower(): str(value) for name, value in cursor})


def parse_server_info(variables: Mapping[str, str]) -> ServerInfo:
    """Read the result of `VARIABLES_SQL`; raises BinlogError for an unreadable version."""
    version = variables.get("version", "")
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version.removeprefix("5.5.5-"))
    if match is None:
        raise BinlogError(f"The server's version {version!r} can't be read.")
    return ServerInfo(
        kind=kind_of(f"{version} {variables.get('version_comment', '')}"),
        version=tuple(map(int, match.groups())),
        server_id=int(variables.get("server_id", "0")),
        server_uuid=variables.get("server_uuid", ""),
        checksum=variables.get("binlog_checksum", "NONE").upper(),
        gtid_mode=variables.get("gtid_mode", "").upper(),
        folds_names=int(variables.get("lower_case_table_names", "0")) != 0,
    )

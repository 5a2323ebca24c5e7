"""Private MariaDB 11 servers, from Debian 13 (trixie), beside the machine's own MariaDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from replicator.sandbox.server import LOG_FILE_SIZE
from tests.support.servers.debian_packages import DebianPackage
from tests.support.servers.packaged import PackagedServer

STATEMENTS = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mariadb_sys_schema.sql",
)
"""What ``mariadb-install-db`` runs, in its order, but for the texts of HELP."""


class MariaDB11Server(PackagedServer):
    """A MariaDB server of the version that Debian 13 has; see `PackagedServer`."""

    package = DebianPackage("trixie", "mariadb-server-core")
    program = "usr/sbin/mariadbd"
    share = "usr/share/mariadb"

    def _first_options(self, statements: Path) -> Mapping[str, str | None]:
        return {"bootstrap": None, **LOG_FILE_SIZE}

    def _first_statements(self, share: Path) -> str:
        texts = [(share / name).read_text(encoding="utf-8") for name in STATEMENTS]
        return "\n".join(["CREATE DATABASE mysql;", "USE mysql;", *texts, ""])

    def _kind_options(self) -> Mapping[str, str | None]:
        return {**super()._kind_options(), **LOG_FILE_SIZE}

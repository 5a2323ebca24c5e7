"""Private servers of a current MySQL (9 or newer), from Debian's unstable suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.servers.debian_packages import DebianPackage
from tests.support.servers.packaged import PackagedServer

REDO_LOG: Mapping[str, str | None] = {"innodb_redo_log_capacity": "32M"}

# The server does not look up names, so the root of "localhost" is not the one that we come as.
ROOT = (
    "CREATE USER 'root'@'127.0.0.1';",
    "GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;",
)


class MySQLServer(PackagedServer):
    """A MySQL server with GTIDs, of the version that Debian has; see `PackagedServer`.

    ``{"gtid_mode": "OFF"}`` is one without GTIDs. It has no plugins from files: its log says that
    it misses one, and the server does without.
    """

    package = DebianPackage("sid", "mysql-server-core")
    program = "usr/sbin/mysqld"
    share = "usr/share/mysql"

    def _first_options(self, statements: Path) -> Mapping[str, str | None]:
        return {"initialize_insecure": None, "init_file": str(statements), **REDO_LOG}

    def _first_statements(self, share: Path) -> str:
        return "\n".join([*ROOT, ""])

    def _kind_options(self) -> Mapping[str, str | None]:
        return {
            **super()._kind_options(),
            **REDO_LOG,
            "gtid_mode": "ON",
            "enforce_gtid_consistency": "ON",
            "mysqlx": "OFF",  # it would listen on a further port
        }

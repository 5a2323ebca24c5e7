"""Private TiDB servers with their embedded store, from a binary that `make tidb` has built."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from replicator.sandbox.keeper import ServerUnavailableError
from replicator.sandbox.server import DatabaseServer, cache_root

COMMIT = "c7f1b95c537a"
"""The commit of TiDB's branch of version 7.5 that is built."""

CACHE_KEY = f"tidb-7.5-{COMMIT}"
PROGRAM = "tidb-server"

OPTIONS: Mapping[str, str] = {
    "server-version": "8.0.11-TiDB-v7.5",  # as released ones say; ours would say "None"
    "enable-telemetry": "false",
    "log.level": "warn",
}


class TiDBServer(DatabaseServer):
    """A TiDB 7.5 server; see `DatabaseServer`. It has no binlog, so it is a target only.

    Options are those of its configuration file, sections with a dot:
    ``{"performance.txn-total-size-limit": "1048576"}``.
    """

    def __init__(self, options: Mapping[str, str | None] | None = None) -> None:
        super().__init__(options)
        # It does not change its user when root starts it: nobody else may log in.
        self.password = secrets.token_hex(16)

    def _program(self) -> Path:
        program = cache_root() / CACHE_KEY / PROGRAM
        if not program.exists():
            raise ServerUnavailableError(
                f"There is no TiDB on this machine ({program}): build it with `make tidb`, which"
                " needs the Go toolchain and takes some minutes, once."
            )
        return program

    def _lay_out(self, folder: Path) -> None:
        first = folder / "first.sql"
        first.write_text(
            f"ALTER USER 'root'@'%' IDENTIFIED BY '{self.password}';\n"
            "SET GLOBAL local_infile = 1;\n"
        )
        own = {
            "path": str(folder / "data"),
            "temp-dir": str(folder / "temp"),
            "tmp-storage-path": str(folder / "temp"),
            "log.slow-query-file": str(folder / "slow.log"),
            "socket": str(folder / "server.sock"),
            "initialize-sql-file": str(first),
        }
        wanted = {name.replace("_", "-"): value or "true" for name, value in self._wanted.items()}
        lines = [f"{name} = {_toml(value)}" for name, value in {**OPTIONS, **own, **wanted}.items()]
        (folder / "server.toml").write_text("\n".join(lines) + "\n")

    def _argv(self) -> list[str]:
        return [
            str(self._program()),
            f"-config={self.folder / 'server.toml'}",
            "-store=unistore",
            f"-host={self.host}",
            f"-P={self.port}",
            # Its HTTP port would let anybody on this machine change settings.
            "-report-status=false",
        ]


def _toml(value: str) -> str:
    """A value of a TOML file: numbers and truth values as they are, text in quotes."""
    if value in ("true", "false") or value.lstrip("-").isdigit():
        return value
    return json.dumps(value)

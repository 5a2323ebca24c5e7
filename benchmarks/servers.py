"""The private servers that a measurement runs on, with room for all of its rows."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.processes import descendants
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer

_TABLES = {
    "table_open_cache": "12000",
    "table_definition_cache": "12000",
    "innodb_open_files": "12000",
}
"""So that no server closes tables to open others."""


def source_server(room: int = 2) -> DatabaseServer:
    """A source, with a binlog. ``room``: as for `target_server`."""
    return MariaDBServer(_options(room))


def target_server(room: int = 2) -> DatabaseServer:
    """A target; it writes no binlog. ``room``: GiB for rows, so that it waits for no disk."""
    return MariaDBServer(_options(room) | {"skip_log_bin": None})


def _options(room: int) -> dict[str, str | None]:
    return {
        "innodb_buffer_pool_size": f"{room}G",
        "innodb_log_file_size": f"{room * 512}M",
        **_TABLES,
    }


def pid_of(server: DatabaseServer) -> int:
    """The process id of a private server, which is told from its keeper by its arguments."""
    folder = str(server.folder)
    for pid in reversed(descendants(os.getpid())):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if any(folder in word for word in words):
            return pid
    raise LookupError(f"no process of the server in {folder}")

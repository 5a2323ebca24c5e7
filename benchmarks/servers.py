"""The private servers that a measurement runs on, with room for all of its rows."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.processes import descendants
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer

_ROOM = {
    # So that no server waits for the disk, nor closes tables to open others.
    "innodb_buffer_pool_size": "2G",
    "innodb_log_file_size": "1G",
    "table_open_cache": "12000",
    "table_definition_cache": "12000",
    "innodb_open_files": "12000",
}


def source_server() -> DatabaseServer:
    """A source, with a binlog."""
    return MariaDBServer(_ROOM)


def target_server() -> DatabaseServer:
    """A target; it writes no binlog."""
    return MariaDBServer(_ROOM | {"skip_log_bin": None})


def pid_of(server: DatabaseServer) -> int:
    """The process id of a private server, which is told from its keeper by its arguments."""
    folder = str(server.folder)
    for pid in reversed(descendants(os.getpid())):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if any(folder in word for word in words):
            return pid
    raise LookupError(f"no process of the server in {folder}")

"""An encrypted binlog: what only says so stands in the file, and may not be sent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import StartServer
from tests.support.streams.binlog_streams import following, here, read_to, row_events


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server can read, which has another user where tests run as root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_an_encrypted_binlog_is_read_from_everywhere(
    start_server: StartServer, folder: Path
) -> None:
    keys = folder / "keys"
    keys.write_text("1;" + "a" * 64 + "\n")
    keys.chmod(0o644)
    options = {
        "plugin-load-add": "file_key_management",
        "file-key-management-filename": str(keys),
        "encrypt-binlog": "ON",
    }
    server = start_server(MariaDBServer, options)
    server.execute("CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)")
    middle = here(server)
    server.execute("INSERT INTO s.t VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO s.t VALUES (2)")
    end = here(server)
    starts = [middle, *(SourcePosition(BinlogPosition(middle.binlog.file, 4)),)]
    for start in starts:
        with following(server, start, "s") as stream:
            assert len(row_events(read_to(stream, end))) == 2
            while not stream.read_segment().caught_up:
                pass

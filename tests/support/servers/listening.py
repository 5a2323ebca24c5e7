"""The TCP addresses at which the process of a private server takes connections."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path

from replicator.sandbox.server import DatabaseServer

LISTEN = "0A"
"""The state of a socket in /proc/net/tcp."""


def process_of(server: DatabaseServer) -> Path:
    [[pid_file]] = server.execute("SELECT @@pid_file")
    pid = Path(server.folder, "data", pid_file).read_text().strip()
    return Path("/proc") / pid


def listening(process: Path) -> set[tuple[str, int]]:
    """Addresses and ports that the process takes TCP connections on, as Linux tells."""
    own = set()
    for link in (process / "fd").iterdir():
        # The server closes files while they are listed; what it listens on stays.
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(link))
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTEN and f"socket:[{inode}]" in own:
                address, port = local.split(":")
                # Groups of four bytes, each in the order of the machine.
                words = struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address))
                packed = struct.pack(f"={len(words)}I", *words)
                found.add((socket.inet_ntop(family, packed), int(port, 16)))
    return found

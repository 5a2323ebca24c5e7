"""Another user of this machine, who connects to whatever listens.

``python -m tests.support.servers.other_user`` becomes that user (`STRANGER`) before it does
anything, which takes root. It speaks Spark's protocol for blocks well enough to fetch any block of
a Spark without authentication, and sends some first words to whatever port it is given.
Source of the protocol: Spark's ``org.apache.spark.network.protocol`` (MessageDecoder, RpcRequest,
ChunkFetchRequest) and ``org.apache.spark.network.shuffle.protocol`` (OpenBlocks, StreamHandle).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

STRANGER = 65534
"""The user ``nobody``."""

SECONDS = 2.0
"""How long a port may be silent."""

_CHUNK_REQUEST, _CHUNK, _RPC_REQUEST, _RPC_RESPONSE = 0, 1, 3, 4
_OPEN_BLOCKS = 0

HELLOS = (
    b"",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    # To Py4J: the fields of its entry point; to a daemon of PySpark: a secret that is not its own.
    b"r\nu\norg\nrj\ne\n",
    struct.pack("!i", 5) + b"wrong" + struct.pack("!i", -2),
    # A TLS record that is a client's hello, without its body.
    b"\x16\x03\x01\x00\x04\x01\x00\x00\x00",
)
"""First words that this program's ports might answer."""

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def _text(value: str) -> bytes:
    return struct.pack("!i", len(value)) + value.encode()


def _message(kind: int, content: bytes) -> bytes:
    return struct.pack("!qb", 9 + len(content), kind) + content


def _received(connection: socket.socket) -> tuple[int, bytes]:
    size, kind = struct.unpack("!qb", _exactly(connection, 9))
    return kind, _exactly(connection, size - 9)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the other side has closed the connection")
        data += piece
    return data


def fetched(port: int, blocks: Iterable[str]) -> Iterator[bytes]:
    """Those of these blocks that the Spark at this port gives out, as it keeps them."""
    with contextlib.suppress(OSError, struct.error), socket.socket() as connection:
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", port))
        for number, block in enumerate(blocks):
            opened = bytes([_OPEN_BLOCKS]) + _text("app") + _text("driver")
            opened += struct.pack("!i", 1) + _text(block)
            request = struct.pack("!qi", number, len(opened)) + opened
            connection.sendall(_message(_RPC_REQUEST, request))
            kind, answer = _received(connection)
            if kind == _RPC_RESPONSE:
                # Behind the number and the size of the answer: its kind, the stream, its chunks.
                (stream,) = struct.unpack_from("!q", answer, 8 + 4 + 1)
                connection.sendall(_message(_CHUNK_REQUEST, struct.pack("!qi", stream, 0)))
                kind, answer = _received(connection)
                if kind == _CHUNK:
                    yield answer[12:]


def told_by(port: int) -> bytes:
    """All that a port says to somebody who does not know any secret."""
    said = b""
    for hello in HELLOS:
        with contextlib.suppress(OSError), socket.socket() as connection:
            connection.settimeout(0.3)
            connection.connect(("127.0.0.1", port))
            connection.sendall(hello)
            while piece := connection.recv(1 << 16):
                said += piece
    return said


def broadcasts(count: int) -> Iterator[str]:
    """Names of blocks in which Spark keeps functions and what belongs to them."""
    for number in range(count):
        for piece in range(2):
            yield f"broadcast_{number}_piece{piece}"


def ports_of(processes: Iterable[int]) -> list[int]:
    """The TCP ports at which these processes listen."""
    sockets = set()
    for process in processes:
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(file))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return sorted(found)


def descendants(process: int) -> list[int]:
    """A process and all that it has started."""
    found = [process]
    for parent in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def _as_stranger(*words: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.servers.other_user", *map(str, words)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    told: list[str] = json.loads(done.stdout)
    return told


def stolen_blocks(ports: Iterable[int], count: int) -> list[bytes]:
    """What a stranger gets of the first so many broadcasts, at all of these ports."""
    return [*map(base64.b64decode, _as_stranger("blocks", count, *ports))]


def overheard(ports: Iterable[int]) -> bytes:
    """What these ports tell a stranger."""
    return b"".join(map(base64.b64decode, _as_stranger("hello", *ports)))


def opened_by_stranger(paths: Iterable[Path]) -> list[str]:
    """Of these files and Unix sockets, those that a stranger can read or connect to."""
    return _as_stranger("files", *paths)


def _opens(path: Path) -> bool:
    with contextlib.suppress(OSError):
        if path.is_socket():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                return True
        path.read_bytes()
        return True
    return False


def main(words: list[str]) -> list[str]:
    match words:
        case ["blocks", count, *ports]:
            found = [fetched(int(port), broadcasts(int(count))) for port in ports]
            return [base64.b64encode(block).decode() for blocks in found for block in blocks]
        case ["hello", *ports]:
            return [base64.b64encode(told_by(int(port))).decode() for port in ports]
        case ["files", *paths]:
            return [path for path in paths if _opens(Path(path))]
    raise AssertionError(words)


if __name__ == "__main__":
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)
    sys.stdout.write(json.dumps(main(sys.argv[1:])))

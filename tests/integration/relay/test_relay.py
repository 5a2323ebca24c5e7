"""A relay has the files of a server, and gives what the server sends."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from replicator.binlog.connection.dump_connection import (
    BinlogConnection,
    BinlogSource,
    binlog_connection,
)
from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import StreamLostError
from replicator.binlog.events.event_header import EventType
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.relay import relay as relay_module
from replicator.binlog.relay.relay import Relay
from replicator.binlog.relay.relay_log import RelaySettings
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.server.identity import IDENTITY_SQL, ServerIdentity
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.running import settles

NO_SPACE = 1 << 30
"""GiB that no disk has free, so that all files are deleted that nothing needs."""
LARGE = 17 << 20
"""Bytes of an event that takes two packets."""


def write(server: DatabaseServer, schema: str) -> None:
    """Two files with small and large transactions."""
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a LONGTEXT) ENGINE=MyISAM",
        "INSERT INTO t (a) VALUES ('first')",
        "FLUSH BINARY LOGS",
        *("INSERT INTO t (a) VALUES (REPEAT('a', 300))" for _ in range(50)),
        f"INSERT INTO t (a) VALUES (REPEAT('b', {LARGE}))",
        "FLUSH BINARY LOGS",
        "INSERT INTO t (a) VALUES ('last')",
        database=schema,
    )


@contextmanager
def relayed(
    server: DatabaseServer, folder: Path, position: BinlogPosition, **settings: Any
) -> Iterator[tuple[Relay, BinlogSource]]:
    relay = Relay(RelaySettings("a", folder, **settings), 4712)
    source = BinlogSource(
        DatabaseAddress("127.0.0.1", server.port, "root", ""),
        4711,
        ServerIdentity.told(server.execute(IDENTITY_SQL)),
        heartbeat=0.2,
        read_timeout=10.0,
        relay=relay,
    )
    relay.start(source, position)
    try:
        yield relay, source
    finally:
        relay.close()


def caught_up(relay: Relay, server: DatabaseServer) -> bool:
    size, end = relay.size(), end_of(server)
    return size is not None and size.end == str(end)


def events(connection: BinlogConnection, end: BinlogPosition) -> list[bytes]:
    """What comes up to the heartbeat at the end."""
    found: list[bytes] = []
    packets = PacketBuffer()
    with closing(connection):
        connection.open()
        while True:
            packets.received(connection.receive(packets.room(), wait=True))
            while (event := packets.next_event()) is not None:
                if event[4] in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
                    return found
                found.append(event)


@pytest.fixture(params=["mariadb_source", "mysql56_source", "mariadb11_source", "mysql_source"])
def source(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    ((packet,),) = server.execute("SELECT @@global.max_allowed_packet")
    server.execute("SET GLOBAL max_allowed_packet = 1 << 26")
    yield server
    server.execute(f"SET GLOBAL max_allowed_packet = {packet}")


@pytest.fixture
def begin(source: DatabaseServer, database_name: str) -> BinlogPosition:
    source.execute("FLUSH BINARY LOGS")
    start = end_of(source)
    source.execute(f"CREATE DATABASE {database_name}")
    write(source, database_name)
    return start


async def test_the_files_are_those_of_the_server(
    source: DatabaseServer, begin: BinlogPosition, tmp_path: Path
) -> None:
    with relayed(source, tmp_path, begin) as (relay, _):
        await settles(lambda: caught_up(relay, source), True)
        size = relay.size()
    assert size is not None
    assert size.files == 3
    if isinstance(source, MariaDBServer) and (program := shutil.which("mariadb-binlog")):
        shown = read_with(program, files_in(tmp_path))
        assert shown.count("INSERT INTO t") == 53
    source.execute("FLUSH BINARY LOGS")
    assert_equal(tmp_path, source)


def read_with(program: str, files: list[Path]) -> str:
    command = [program, "--verify-binlog-checksum", *map(str, files)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def test_a_relay_continues_where_it_ended(
    source: DatabaseServer, begin: BinlogPosition, tmp_path: Path, database_name: str
) -> None:
    for number in range(3):
        if number:
            source.execute(f"INSERT INTO {database_name}.t (a) VALUES ('{number}')")
            with files_in(tmp_path)[-1].open("ab") as file:
                file.write(b"torn")
        with relayed(source, tmp_path, begin) as (relay, _), capture_logs() as logged:
            await settles(partial(caught_up, relay, source), True)
        assert logged == []
    source.execute("FLUSH BINARY LOGS")
    with relayed(source, tmp_path, begin) as (relay, _):
        await settles(lambda: caught_up(relay, source), True)
    assert_equal(tmp_path, source)


async def test_another_binlog_begins_another_relay(
    start_server: StartServer, tmp_path: Path
) -> None:
    source = start_server(MariaDBServer)
    source.execute("CREATE DATABASE d", "FLUSH BINARY LOGS", "CREATE TABLE d.t (id INT)")
    begin = BinlogPosition(end_of(source).file, 4)
    with relayed(source, tmp_path, begin) as (relay, _):
        await settles(lambda: caught_up(relay, source), True)
    source.execute("RESET MASTER", "FLUSH BINARY LOGS", "CREATE TABLE d.u (id INT)")
    with capture_logs() as logged, relayed(source, tmp_path, begin) as (relay, there):
        await settles(lambda: caught_up(relay, source), True)
        copied = events(binlog_connection(there, SourcePosition(begin)), end_of(source))
        assert len(folders_in(tmp_path)) == 2
        assert len(relay.purge(begin, every=True)) == 1
        assert relay.has(begin)
    assert b"d.u" in b"".join(copied)
    assert [entry["event"] for entry in logged] == ["relay.set-aside"]
    assert len(folders_in(tmp_path)) == 1


def folders_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


async def test_a_reset_under_a_relay_fails_and_leaves_no_file_open(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "_FAILED_WAIT", 0.02)
    source = start_server(MariaDBServer)
    source.execute("CREATE DATABASE d")
    with relayed(source, tmp_path, end_of(source)) as (relay, _):
        await settles(lambda: caught_up(relay, source), True)
        source.execute("RESET MASTER", *(f"CREATE TABLE d.t{n} (id INT)" for n in range(9)))
        relay.reconnect()
        await settles(lambda: relay.tail.interruptions > 9, True)
        assert "another one" in relay.error
        assert len(open_below(tmp_path)) < 3


def open_below(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return [path for path in found if path.startswith(f"{folder}/")]


async def test_a_source_is_read_where_the_relay_is_damaged(
    source: DatabaseServer, begin: BinlogPosition, tmp_path: Path, database_name: str
) -> None:
    with relayed(source, tmp_path, begin) as (relay, there):
        await settles(lambda: caught_up(relay, source), True)
        first = files_in(tmp_path)[0]
        data = bytearray(first.read_bytes())
        data[-60] ^= 1
        first.write_bytes(data)
        start = SourcePosition(BinlogPosition(begin.file, 4))
        with pytest.raises(StreamLostError, match="damaged"), capture_logs() as logged:
            read_up(there, start)
        assert not relay.has(start.binlog)
        assert "damaged" in error_of(relay)
        assert [entry["event"] for entry in logged] == ["relay.failed"]
        assert read_up(there, start) == end_of(source)


async def test_a_folder_that_another_process_uses_is_left_alone(
    mariadb_source: DatabaseServer, tmp_path: Path
) -> None:
    source, begin = mariadb_source, end_of(mariadb_source)
    with relayed(source, tmp_path, begin) as (relay, _):
        await settles(lambda: caught_up(relay, source), True)
        with capture_logs() as logged, relayed(source, tmp_path, begin) as (other, there):
            await settles(lambda: [entry["event"] for entry in logged], ["relay.failed"])
            assert not other.has(begin)
            assert events(binlog_connection(there, SourcePosition(begin)), begin)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a few of the server's events."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a file system can't be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def enlarge(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)


async def test_a_full_disk_loses_nothing(
    source: DatabaseServer,
    database_name: str,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The source is read meanwhile; with more space, the copy continues."""
    monkeypatch.setattr(relay_module, "_FAILED_WAIT", 2.0)
    source.execute("FLUSH BINARY LOGS")
    start = end_of(source)
    source.execute(f"CREATE DATABASE {database_name}")
    write(source, database_name)
    with capture_logs() as logged, relayed(source, small_disk, start) as (relay, there):
        await settles(lambda: "No space" in error_of(relay), True)
        for begin in (BinlogPosition(start.file, 4), end_of(source)):
            end = await anyio.to_thread.run_sync(read_through, there, SourcePosition(begin))
            assert end == end_of(source)
        enlarge(small_disk)
        await settles(lambda: caught_up(relay, source), True)
    source.execute("FLUSH BINARY LOGS")
    assert_equal(small_disk, source)
    assert [entry["event"] for entry in logged] == ["relay.failed"]


def read_on(stream: BinlogStream) -> None:
    while not stream.read_segment().caught_up:
        pass


def error_of(relay: Relay) -> str:
    size = relay.size()
    return size.error if size is not None else ""


def read_through(source: BinlogSource, start: SourcePosition) -> BinlogPosition:
    """Read to the end of the binlog, with a new connection whenever one is lost."""
    limits = SegmentLimits(target_bytes=1 << 20)
    while True:
        with closing(BinlogStream(source, start, route=lambda *_: None, limits=limits)) as stream:
            try:
                stream.open()
                while not (segment := stream.read_segment()).caught_up:
                    start = segment.end
                return segment.end.binlog
            except StreamLostError:
                continue


async def test_a_file_that_can_not_be_synchronized_is_copied_on(
    mariadb_source: DatabaseServer,
    tmp_path: Path,
    database_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No reader gets what it had before."""
    monkeypatch.setattr(relay_module, "_FAILED_WAIT", 0.1)
    source = mariadb_source
    source.execute("FLUSH BINARY LOGS")
    begin = end_of(source)
    source.execute(f"CREATE DATABASE {database_name}")
    write(source, database_name)
    limits = SegmentLimits(target_bytes=1 << 20)
    with relayed(source, tmp_path, begin) as (relay, there):
        await settles(lambda: caught_up(relay, source), True)
        start = SourcePosition(BinlogPosition(begin.file, 4))
        stream = BinlogStream(there, start, route=lambda *_: None, limits=limits)
        with closing(stream):
            stream.open()
            read_on(stream)
            with monkeypatch.context() as broken:
                broken.setattr("os.fsync", fail)
                source.execute(f"INSERT INTO {database_name}.t (a) VALUES ('lost')")
                await settles(lambda: error_of(relay), "broken")
            await settles(lambda: error_of(relay), "")
            await settles(lambda: caught_up(relay, source), True)
            source.execute(f"INSERT INTO {database_name}.t (a) VALUES ('kept')")
            ends = [begin]
            with suppress(StreamLostError):
                while ends[-1].key < end_of(source).key:
                    ends.append(stream.read_segment().end.binlog)
            assert ends == sorted(ends, key=lambda end: end.key)
        size = relay.size()
        assert size is not None
        assert size.files == 3
    source.execute("FLUSH BINARY LOGS")
    assert_equal(tmp_path, source)


def fail(_: int) -> None:
    raise OSError("broken")


async def test_a_file_that_is_deleted_under_a_reader_is_read_from_the_source(
    source: DatabaseServer, begin: BinlogPosition, tmp_path: Path
) -> None:
    limits = SegmentLimits(target_bytes=1)
    purging = {"purge_interval": 0, "purge_remain_space": NO_SPACE}
    with relayed(source, tmp_path, begin, **purging) as (relay, there):
        first = SourcePosition(BinlogPosition(begin.file, 4))
        await settles(lambda: caught_up(relay, source), True)
        stream = BinlogStream(there, first, route=lambda *_: None, limits=limits)
        with closing(stream):
            stream.open()
            at = stream.read_segment().end
            assert relay.has(at.binlog)
            assert len(relay.purge(end_of(source))) == 2
            assert not relay.has(at.binlog)
            with pytest.raises(StreamLostError, match="no longer has"):
                read_on(stream)
        assert read_through(there, at) == end_of(source)


def test_numbers_of_files_may_have_gaps(start_server: StartServer, tmp_path: Path) -> None:
    """A MySQL leaves numbers out if its folder has a file with a higher one."""
    source = start_server(MySQLServer)
    begin = end_of(source)
    with relayed(source, tmp_path, begin) as (relay, there):
        start = SourcePosition(BinlogPosition(begin.file, 4))
        assert read_through(there, start) == end_of(source)
        name, _, number = begin.file.rpartition(".")
        (own,) = source.folder.rglob(begin.file)
        own.with_name(f"{name}.{int(number) + 5:06}").touch()
        source.execute("FLUSH BINARY LOGS", "CREATE DATABASE gap")
        assert end_of(source).sequence == begin.sequence + 6
        assert read_up(there, start) == end_of(source)
        assert relay.has(start.binlog)


def read_up(source: BinlogSource, start: SourcePosition) -> BinlogPosition:
    """Read a stream to the end of the binlog, and return that."""
    limits = SegmentLimits(target_bytes=1 << 30)
    with closing(BinlogStream(source, start, route=lambda *_: None, limits=limits)) as stream:
        stream.open()
        while not (segment := stream.read_segment()).caught_up:
            pass
        return segment.end.binlog


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.0*") if path.is_file())


def assert_equal(folder: Path, source: DatabaseServer) -> None:
    """All files but the last one are as at the source."""
    *copies, _ = files_in(folder)
    for copy in copies:
        (own,) = source.folder.rglob(copy.name)
        assert copy.read_bytes() == own.read_bytes(), copy.name


@pytest.mark.parametrize("offset", ["file", "end"])
def test_a_connection_gives_what_the_server_sends(
    source: DatabaseServer, begin: BinlogPosition, tmp_path: Path, offset: str
) -> None:
    start = begin if offset == "file" else end_of(source)
    at = SourcePosition(BinlogPosition(start.file, 4) if offset == "file" else start)
    if offset == "end":
        source.execute("FLUSH BINARY LOGS")
    with relayed(source, tmp_path, begin) as (relay, there):
        copied = events(binlog_connection(there, at), end_of(source))
        assert relay.has(at.binlog)
        sent = events(BinlogConnection(there, at), end_of(source))
    assert [head(event) for event in copied] == [head(event) for event in sent]
    assert [e for e in copied if real(e)] == [e for e in sent if real(e)]


def real(event: bytes) -> bool:
    return event[13:17] != bytes(4)


def head(event: bytes) -> tuple[int, int]:
    return event[4], len(event)

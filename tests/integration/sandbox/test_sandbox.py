from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import pymysql
import pytest

from replicator.sandbox.keeper import (
    Keeper,
    SandboxError,
    ServerDiedError,
    ServerStartError,
    ServerUnavailableError,
)
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer, cached_folder
from tests.conftest import StartServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.servers.tidb import TiDBServer

KINDS = [MariaDBServer, MySQL56Server]

OWNER = """
import sys
from replicator.sandbox.mariadb import MariaDBServer
with MariaDBServer() as server:
    [[pid_file]] = server.execute("SELECT @@pid_file")
    pid = open(pid_file).read().strip()
    print(server.folder, pid, server.port, flush=True)
    sys.stdin.read()
"""


ROOT = Path(__file__).parents[3]
BUILDER = """
import sys
from scripts import build_tidb
build_tidb.GO_FOLDERS = ()
sys.exit(build_tidb.main())
"""


def refuses(port: int) -> bool:
    try:
        pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=2).close()
    except pymysql.err.OperationalError:
        return True
    return False


@pytest.mark.parametrize("kind", [*KINDS, TiDBServer])
def test_restart_and_kill_keep_port_and_data(
    start_server: StartServer, kind: type[DatabaseServer]
) -> None:
    server = start_server(kind)
    port, folder = server.port, server.folder
    server.execute(
        "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"
    )

    server.restart()
    assert server.execute("SELECT id FROM t", database="d") == ((1,),)

    server.execute("INSERT INTO d.t VALUES (2)")
    server.kill()
    assert refuses(port)
    server.start()
    assert server.execute("SELECT id FROM d.t ORDER BY id") == ((1,), (2,))
    assert (server.port, server.folder) == (port, folder)


@pytest.mark.parametrize("kind", KINDS)
def test_servers_have_row_binlogs_and_ids_of_their_own(
    start_server: StartServer, kind: type[DatabaseServer]
) -> None:
    one, two = start_server(kind), start_server(kind)
    rows = [
        server.execute("SELECT @@binlog_format, @@log_bin, @@server_id")[0] for server in (one, two)
    ]
    assert rows == [("ROW", 1, one.server_id), ("ROW", 1, two.server_id)]
    assert one.server_id != two.server_id


def test_options_override_the_defaults(start_server: StartServer) -> None:
    server = start_server(
        MariaDBServer,
        {"binlog-format": "MIXED", "server_id": "42", "log_bin_compress": None},
    )
    shown = server.execute("SELECT @@binlog_format, @@server_id, @@log_bin_compress")
    assert shown == (("MIXED", 42, 1),)
    assert server.server_id == 42


def test_users_created_by_sql_can_log_in(start_server: StartServer) -> None:
    server = start_server(MySQL56Server)
    server.execute("CREATE USER 'dm'@'%' IDENTIFIED BY 'secret'")
    with server.connect(user="dm", password="secret") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_USER()")
        assert cursor.fetchone() == ("dm@%",)


def test_mysql56_writes_gtids(start_server: StartServer) -> None:
    server = start_server(MySQL56Server, GTID_OPTIONS)
    assert server.execute("SELECT @@version")[0][0].startswith("5.6.24")
    server.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    [[executed, uuid]] = server.execute("SELECT @@GLOBAL.gtid_executed, @@server_uuid")
    assert executed == f"{uuid}:1-2"


def test_the_server_is_gone_after_the_block(start_server: StartServer) -> None:
    with MariaDBServer() as server:
        folder, port = server.folder, server.port
    assert not folder.exists()
    assert refuses(port)
    with pytest.raises(SandboxError, match="not started"):
        _ = server.folder


def test_the_server_is_gone_after_an_exception() -> None:
    server = MariaDBServer()
    server.start()
    folder, port = server.folder, server.port
    with pytest.raises(pymysql.err.ProgrammingError), server:
        server.execute("SELEC 1")
    assert not folder.exists()
    assert refuses(port)


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_is_gone_when_its_owner_is(deadly: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stderr is not None
        folder, pid, port = owner.stdout.readline().split()
        assert Path(folder).is_dir()
        assert Path(f"/proc/{pid}").is_dir()
        assert not refuses(int(port))

        owner.send_signal(deadly)
        # The keeper shares the owner's standard error: it ends when both are done.
        owner.stderr.read()
    assert not Path(folder).exists()
    assert not Path(f"/proc/{pid}").exists()
    assert refuses(int(port))


def test_a_server_that_does_not_start_shows_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as place:
        Path(place).chmod(0o711)  # the server's user has to get through
        monkeypatch.setenv("TMPDIR", place)
        with pytest.raises(ServerStartError, match="no_such_option"):
            MariaDBServer({"no_such_option": "1"}).start()
        assert list(Path(place).iterdir()) == []


def test_a_server_that_crashed_shows_its_log(start_server: StartServer) -> None:
    server = start_server(MySQL56Server)
    [[pid_file]] = server.execute("SELECT @@pid_file")
    process = int(Path(pid_file).read_text())
    ended = os.pidfd_open(process)
    os.kill(process, signal.SIGABRT)
    select.select([ended], [], [])
    os.close(ended)
    with pytest.raises(ServerDiedError, match=r"(?s)ended by itself.*handle_fatal_signal"):
        server.execute("SELECT 1")
    server.start()
    server.execute("SELECT 1")


def test_tidb_is_for_this_process_alone_and_leaves_nothing(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start_server(TiDBServer)  # skips where there is none
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        started.connect(password="")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with TiDBServer({"performance.txn-total-size-limit": "2097152"}) as server:
        assert server.folder.parent == tmp_path
        [[settings]] = server.execute("SELECT @@tidb_config")
        assert '"txn-total-size-limit": 2097152' in settings
        # A private server is like one that was put up for good in what a task looks at.
        assert server.execute("SELECT @@local_infile")[0] == (1,)
        assert "-TiDB-v7.5" in str(server.execute("SELECT VERSION()"))
        port = server.port
    assert list(tmp_path.iterdir()) == []
    assert refuses(port)


def test_without_its_binary_tidb_names_what_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ServerUnavailableError, match="make tidb"):
        TiDBServer().start()


@pytest.mark.parametrize(("lacking", "said"), [("go", "install Go"), ("gcc", "install gcc")])
def test_what_the_building_of_tidb_lacks_is_named(tmp_path: Path, lacking: str, said: str) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    if lacking != "go":
        (folder / "go").write_text("#!/bin/sh\n")
        (folder / "go").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", BUILDER],
        env={"PATH": str(folder), "XDG_CACHE_HOME": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_without_npm_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerUnavailableError, match="apt-get install npm"):
        MySQL56Server().start()


def test_what_a_keeper_started_ends_with_it(tmp_path: Path) -> None:
    # The program starts another one and leaves it alone, which holds the write end of the pipe.
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with Keeper() as keeper, open(reading, "rb") as pipe:
        script = f"sleep 600 >/proc/{os.getpid()}/fd/{writing} & echo started >&2; wait"
        keeper.start(["/bin/sh", "-c", script], os.environ, tmp_path / "log")
        assert keeper.wait(0.0) is None
        keeper.close()
        os.close(writing)
        assert pipe.read() == b""
    assert not keeper.folder.exists()


def test_a_program_is_started_in_the_folder_of_its_keeper(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Keeper() as keeper:
        keeper.start(["/bin/pwd"], os.environ, log)
        assert keeper.wait(60) == 0
        assert Path(log.read_text().strip()).samefile(keeper.folder)


def test_a_keeper_that_failed_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keeper = Keeper()
    with pytest.raises(SandboxError, match="ended unexpectedly"):
        keeper.start(["/no/such/program"], os.environ, tmp_path / "log")
    assert not keeper.folder.exists()
    with pytest.raises(SandboxError, match="may still run"):
        keeper.close()
    assert "/no/such/program" in capfd.readouterr().err


def test_a_cached_folder_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = []
    barrier = Barrier(4)

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("complete")

    def get(_: int) -> str:
        barrier.wait()
        return (cached_folder("key", build) / "file").read_text()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(get, range(4))) == ["complete"] * 4
    assert len(built) == 1


def test_a_broken_build_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def half(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cached_folder("key", half)
    folder = cached_folder("key", lambda folder: (folder / "whole").touch())
    assert [entry.name for entry in folder.iterdir()] == ["whole"]

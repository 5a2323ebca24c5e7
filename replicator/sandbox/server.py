"""A private, temporary database server on a free loopback port: the parts common to all kinds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from replicator.sandbox.keeper import (
    Keeper,
    SandboxError,
    ServerDiedError,
    ServerStartError,
    ServerUnavailableError,
)

START_SECONDS = 60.0
LOG_LINES = 60
MYSQL_USER = "mysql"

COMMON_OPTIONS: Mapping[str, str | None] = {
    "bind_address": "127.0.0.1",
    "socket": "server.sock",  # in the data folder: a path of any length would not fit a socket
    "skip_name_resolve": None,
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "character_set_server": "utf8mb4",
    "local_infile": "1",
    "max_allowed_packet": "64M",
    "performance_schema": "OFF",
    # Committed data survives if the server is killed, not if the machine fails: no wait for disks.
    "sync_binlog": "0",
    "innodb_flush_log_at_trx_commit": "2",
    "innodb_doublewrite": "0",
    "innodb_use_native_aio": "0",  # the machine's quota of them is small, and shared
    "innodb_buffer_pool_size": "128M",
}

LOG_FILE_SIZE: Mapping[str, str | None] = {"innodb_log_file_size": "32M"}
"""The size of InnoDB's log; newer MySQL versions no longer have this option."""


class DatabaseServer(ABC):
    """One server: a context manager that starts it, and finally kills it and removes its folder.

    `options` are for the server's option file, where `-` and `_` in names are the same. The value
    None means an option without a value (``{"skip_log_bin": None}``). They override the defaults:
    row-based binlog, utf8mb4, and a server id that no other running private server has.

    Clients log in as `user` with `password` (empty except for TiDB), from this machine only.
    """

    host = "127.0.0.1"
    user = "root"
    password = ""  # nosec B105

    def __init__(self, options: Mapping[str, str | None] | None = None) -> None:
        self._wanted: dict[str, str | None] = {}
        self.reconfigure(options or {})
        self._resources = contextlib.ExitStack()
        self._keeper: Keeper | None = None
        self._wanted_running = False
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _program(self) -> Path:
        """Return the server's binary. Raises ServerUnavailableError."""

    @abstractmethod
    def _lay_out(self, folder: Path) -> None:
        """Put the files for the first start into the server's new folder."""

    @abstractmethod
    def _argv(self) -> list[str]:
        """Return the command that starts the server."""

    def reconfigure(self, options: Mapping[str, str | None]) -> None:
        """Replace all options from the next start on."""
        self._wanted = {name.replace("-", "_"): value for name, value in options.items()}

    @property
    def port(self) -> int:
        """The TCP port, which stays the same from the first start to `close`."""
        self._opened()
        return self._port

    @property
    def folder(self) -> Path:
        """The folder of the server's data; removed by `close`."""
        return self._opened().folder

    @property
    def server_id(self) -> int:
        """The server's id in binlogs: the option `server_id` if it is set, otherwise the port."""
        return int(self._wanted.get("server_id") or self.port)

    def start(self) -> None:
        """Start the server and wait until it accepts connections; do nothing if it runs already.

        Raises ServerUnavailableError if its program is missing. Raises ServerStartError, with the
        end of the log, if the start fails; the server is closed then.
        """
        if self._keeper is None:
            self._open()
        keeper = self._opened()
        if keeper.running():
            return
        try:
            keeper.start(self._argv(), program_environment(self._program()), self._log)
            self._await_connections(keeper)
        except BaseException:
            self.close()
            raise
        self._wanted_running = True

    def stop(self) -> None:
        """Shut the server down cleanly; its data and its port stay for another `start`."""
        self._wanted_running = False
        self._opened().stop()

    def restart(self) -> None:
        """Shut the server down cleanly and start it again with the same port and data."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server with SIGKILL; its data and its port stay for another `start`."""
        self._wanted_running = False
        self._opened().kill()

    def close(self) -> None:
        """Kill the server, remove its folder, and release the port. Idempotent."""
        self._wanted_running = False
        self._keeper = None
        self._resources.close()

    def connect(self, **overrides: Any) -> Connection[Cursor]:
        """Return a new connection as root with autocommit and utf8mb4.

        ``overrides`` are further arguments of PyMySQL. Raises pymysql's errors; ServerDiedError if
        nothing listens because the server crashed.
        """
        settings: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "autocommit": True,
            # For TLS, PyMySQL reads all certificates of the host at each connection, which takes 25
            # ms of CPU.
            "ssl_disabled": "require_secure_transport" not in self._wanted,
        }
        try:
            connection: Connection[Cursor] = pymysql.connect(**(settings | overrides))
        except pymysql.err.OperationalError as error:
            if self._wanted_running and not self._opened().running():
                text = f"{self._program()} ended by itself. The end of its log:\n{tail(self._log)}"
                raise ServerDiedError(text) from error
            raise
        return connection

    def execute(self, *statements: str, database: str | None = None) -> tuple[tuple[Any, ...], ...]:
        """Run the statements on one new connection; return the rows of the last statement."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _opened(self) -> Keeper:
        if self._keeper is None:
            raise SandboxError(f"This {type(self).__name__} is not started, or closed.")
        return self._keeper

    def _open(self) -> None:
        self._program()
        with contextlib.ExitStack() as resources:
            reservation = resources.enter_context(reserved_port(self.host))
            self._port = reservation.getsockname()[1]
            keeper = resources.enter_context(Keeper())
            self._lay_out(keeper.folder)
            self._resources = resources.pop_all()
        self._keeper = keeper

    def _await_connections(self, keeper: Keeper) -> None:
        # No event for "I am ready" exists in both kinds of server, so try to connect until it
        # works.
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect(connect_timeout=1).close()
                return
            except pymysql.err.OperationalError as error:
                if not keeper.running():
                    raise self._start_error("ended while it started") from error
                if time.monotonic() > deadline:
                    text = f"took no connection on port {self.port} within {START_SECONDS:.0f} s"
                    raise self._start_error(text) from error
                time.sleep(0.02)

    def _start_error(self, what: str) -> ServerStartError:
        return ServerStartError(f"{self._program()} {what}. The end of its log:\n{tail(self._log)}")


class BinlogServer(DatabaseServer):
    """A MySQL or a MariaDB server.

    Has command line options, and a copy of a prepared data folder.
    """

    @abstractmethod
    def _template(self) -> Path:
        """Return a folder with ``data`` and other files, which is copied for each server."""

    @abstractmethod
    def _kind_options(self) -> Mapping[str, str | None]:
        """Return options that this kind of server needs besides the common ones."""

    def _command(self) -> list[str]:
        """Return the command that runs the program, before its options."""
        return [str(self._program())]

    def _lay_out(self, folder: Path) -> None:
        shutil.copytree(self._template(), folder, dirs_exist_ok=True)
        # copytree also copies the mode of the cache folder, which other users could read.
        folder.chmod(0o700)
        give_to_server(folder)

    def _argv(self) -> list[str]:
        own: dict[str, str | None] = {
            "datadir": str(self.folder / "data"),
            "tmpdir": str(self.folder),
            "secure_file_priv": str(self.folder),
            "port": str(self.port),
            "server_id": str(self.server_id),
        }
        options = {**COMMON_OPTIONS, **own, **self._kind_options(), **self._wanted}
        return [*self._command(), "--no-defaults", *user_arguments(), *arguments(options)]


def arguments(options: Mapping[str, str | None]) -> list[str]:
    """Return options as command line arguments of a server."""
    return [
        f"--{name}" if value is None else f"--{name}={value}" for name, value in options.items()
    ]


def user_arguments() -> list[str]:
    """Return the arguments that make a server, when root starts it, change to the database user.

    Any local user can log in to the server as its root, so the server must not be able to write the
    operating system root's files.
    """
    return [f"--user={MYSQL_USER}"] if os.geteuid() == 0 else []


def give_to_server(folder: Path) -> None:
    """Make the user that the server will run as the owner of the folder and all its content."""
    if os.geteuid() != 0:
        return
    try:
        owner = pwd.getpwnam(MYSQL_USER)
    except KeyError as error:
        raise ServerUnavailableError(
            f"Started by root, servers run as the user {MYSQL_USER!r}, which this machine lacks:"
            " install the package mariadb-server, or run as a normal user."
        ) from error
    for entry in (folder, *folder.rglob("*")):
        os.chown(entry, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def program_environment(program: Path) -> dict[str, str]:
    """Return our environment, changed to find the libraries in the program's folder first."""
    paths = [str(program.parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}


def tail(log: Path) -> str:
    """Return the last lines of a log."""
    if not log.exists():
        return "(it wrote none)"
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES:])


def reserved_port(host: str) -> socket.socket:
    """Return a socket that is bound to a free port, so that only a server can use this port.

    Linux lets a server listen on a port that another socket is bound to, if that socket does not
    listen and both set SO_REUSEADDR (servers do). It gives such a port to no process that asks for
    any free port.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind((host, 0))
    return reservation


def cache_root() -> Path:
    """Return ``$XDG_CACHE_HOME/replicator``, or ``~/.cache/replicator``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "replicator"


def cached_folder(key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of a key; if it is missing, let `build` fill an empty folder first.

    Processes that want the same key at the same time wait for the one that builds the folder. A
    folder gets its name only when it is complete. If the building process was killed, the folder is
    built again.
    """
    folder = cache_root() / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            part = folder.with_name(f"{key}.part")
            if part.exists():
                shutil.rmtree(part)
            part.mkdir()
            build(part)
            part.rename(folder)
    return folder

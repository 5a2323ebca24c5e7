"""Test files executed on a source that a task follows, each with its outcome."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import pymysql

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import give_to_server
from tests.support.servers.binlog_ends import end_of
from tests.workload.comparison import Comparison, Difference
from tests.workload.debian import TestPackage
from tests.workload.files import AS_A_REPLICA
from tests.workload.follower import META, Follower, Trouble
from tests.workload.gate import Gate, destroys

SCHEMAS: Mapping[str, str] = {"test": "merged"}
"""The schema that files work in gets another name on the target; those they make keep theirs."""

SYSTEM = frozenset({"mysql", "information_schema", "performance_schema", "sys", "mtr", META})
SYSTEM_TABLES = "SHOW TABLES FROM mysql"
"""What a source has lost behind the file ``drop`` no longer is as another file expects it."""

FILE_SECONDS = 300.0
"""A file that takes longer is cut off there, if nothing else is said."""

MOST_TASKS = 10
"""So often a file is followed anew behind a fault."""

WORST = ("hangs", "restarts", "died", "refused")

SKIPPED = 62
"""The client's exit status when a file says that this server is not for it."""

SOURCE_OPTIONS: Mapping[str, str | None] = {
    # As in the test suite's own settings, as far as files rely on them.
    "character_set_server": "latin1",
    "log_bin_trust_function_creators": "1",
    "secure_file_priv": "",
    "plugin_maturity": "unknown",
    "max_heap_table_size": "1M",
}

TARGET_OPTIONS: Mapping[str, str | None] = {
    "character_set_server": "latin1",
    "plugin_maturity": "unknown",
}


@dataclass
class Outcome:
    """What became of one file.

    `result` is ``equal``, ``differs``, ``refused``, ``hangs``, ``restarts``, ``died`` (of the
    task), or ``no workload``: the file ended before it changed anything. Of several, the worst.
    """

    file: str
    result: str
    detail: str = ""
    differences: list[Difference] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    statements: int = 0
    comparisons: int = 0
    tables: int = 0
    rows: int = 0
    unread: int = 0
    seconds: float = 0.0
    client: str = ""


class SuiteRun:
    """Two servers, and a task that stays as long as it can be brought behind its faults.

    `keep`: where the statements and logs of each file go; `seconds`: after which a file is cut off.
    What it did up to then counts.
    """

    def __init__(self, package: TestPackage, keep: Path | None, seconds: float) -> None:
        self._package = package
        self._seconds = seconds
        self._keep = keep
        self._resources = contextlib.ExitStack()
        self._source: MariaDBServer
        self._sources = contextlib.ExitStack()
        self._system_tables: tuple[tuple[object, ...], ...] = ()
        self._follower: Follower | None = None
        self._stale = False
        self._following = contextlib.ExitStack()
        self._globals: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._resources.push(self._sources)
        self._new_source()
        self._target = self._resources.enter_context(MariaDBServer(TARGET_OPTIONS))
        folder = tempfile.TemporaryDirectory(prefix="suite-")
        self._folder = Path(self._resources.enter_context(folder))
        self._resources.push(self._following)
        return self

    def _new_source(self) -> None:
        """A source in place of the present one, if any, which nothing follows."""
        self._sources.close()
        self._source = self._sources.enter_context(MariaDBServer(SOURCE_OPTIONS))
        with contextlib.suppress(pymysql.err.MySQLError):
            self._source.execute("INSTALL SONAME 'metadata_lock_info'")  # some files look at locks
        self._globals = _globals(self._source)
        self._source.execute(
            "CREATE DATABASE mtr",
            "CREATE PROCEDURE mtr.add_suppression(pattern TEXT) BEGIN END",
        )
        self._system_tables = self._source.execute(SYSTEM_TABLES)

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def run(self, name: str) -> Outcome:
        """Execute one file, and compare whenever it is about to drop something, and at the end."""
        started = time.monotonic()
        follower, trouble = self._followed()
        if trouble is not None:
            self._forget()
            return Outcome(name, trouble.kind, "before the file began", troubles=[trouble])
        execution = Execution(
            self._source, self._target, follower, self._followed_anew, self._seconds
        )
        try:
            outcome = execution.run(name, self._package, self._folder)
        finally:
            if self._keep is not None:
                execution.save(self._keep / Path(name).name.removesuffix(".test"))
        self._stale = bool(outcome.differences or outcome.troubles)
        outcome.seconds = round(time.monotonic() - started, 1)
        return outcome

    def _followed(self) -> tuple[Follower, Trouble | None]:
        """Both servers clean, and a task that has come to the source's end."""
        self._clean()
        follower = self._follower
        if follower is None or self._stale or follower.caught_up() is not None:
            follower = self._begin()
        self._source.execute("CREATE DATABASE test")
        return follower, follower.caught_up()

    def _followed_anew(self) -> Follower | None:
        """The task from the present place on, if that is in the middle of a file without tables.

        None when they are not all gone, or when the task does not come to the end.
        """
        sql = "SELECT table_schema FROM information_schema.tables WHERE table_type <> 'VIEW'"
        if _users_own(row[0] for row in self._source.execute(sql)):
            return None
        follower = self._begin()
        return follower if follower.caught_up() is None else None

    def _begin(self) -> Follower:
        """A task at the source's end, and a target with the source's schemas and nothing else."""
        _drop_schemas(self._target)
        for name, charset, collation in self._source.execute(
            "SELECT schema_name, default_character_set_name, default_collation_name"
            " FROM information_schema.schemata"
        ):
            if name not in SYSTEM:
                there = SCHEMAS.get(name, name).replace("`", "``")
                self._target.execute(
                    f"CREATE DATABASE `{there}` CHARACTER SET {charset} COLLATE {collation}"
                )
        self._stale = False
        if self._follower is None or not self._follower.moved_to_end():
            self._forget()
            self._target.execute(f"DROP DATABASE IF EXISTS {META}")
            self._follower = self._following.enter_context(
                Follower(self._source, self._target, SCHEMAS, SYSTEM)
            )
        return self._follower

    def _forget(self) -> None:
        """End the task."""
        self._following.close()
        self._follower = None

    def _clean(self) -> None:
        for server in (self._source, self._target):
            server.start()  # nothing, if it runs
        if self._source.execute(SYSTEM_TABLES) != self._system_tables:
            self._forget()
            self._new_source()
        for variable, value in _globals(self._source).items():
            wanted = self._globals.get(variable, value)
            if wanted != value:
                with contextlib.suppress(pymysql.err.MySQLError):
                    number = wanted.lstrip("-").isdigit()
                    quoted = wanted if number else self._source.connect().escape(wanted)
                    self._source.execute(f"SET GLOBAL {variable} = {quoted}")
        _drop_schemas(self._source)


class Execution:
    """One file being executed."""

    def __init__(
        self,
        source: MariaDBServer,
        target: MariaDBServer,
        follower: Follower,
        anew: Callable[[], Follower | None],
        seconds: float,
    ) -> None:
        self._seconds = seconds
        self._anew = anew
        self._source = source
        self._target = target
        self._follower = follower
        self._comparison = Comparison(source, target, SCHEMAS, SYSTEM)
        self._as_a_replica: tuple[str, str] | None = None
        self._statements: list[tuple[int, bytes]] = []
        self._differences: dict[str, Difference] = {}
        self._troubles: list[Trouble] = []
        self._blind = False
        self._lost_at = 0
        self._logs = ""
        self._compared = ""
        self._count = 0
        self._client = ""

    def run(self, name: str, package: TestPackage, folder: Path) -> Outcome:
        """Execute the file with the client, through a gate."""
        self._as_a_replica = AS_A_REPLICA.get(name)
        socket = folder / "gate.sock"
        socket.unlink(missing_ok=True)
        before = self._end()
        gate = Gate(
            socket,
            self._source.folder / "data" / "server.sock",
            self._look,
            lambda number, text: self._statements.append((number, text)),
        )
        with gate:
            status = self._execute(package, package.file(name), socket)
        if not self._blind:
            self._compare()
        self._logs += self._follower.log()
        outcome = Outcome(name, "equal", troubles=self._troubles)
        outcome.differences = list(self._differences.values())
        outcome.statements, outcome.comparisons = len(self._statements), self._count
        outcome.tables, outcome.rows = self._comparison.tables, self._comparison.rows
        outcome.unread, outcome.client = self._comparison.unread, self._client
        if self._differences:
            outcome.result = "differs"
        elif self._troubles:
            outcome.result = min((t.kind for t in self._troubles), key=WORST.index)
        elif status == SKIPPED or before == self._end():
            outcome.result = "no workload"
        if status < 0:
            outcome.detail = f"cut off after {self._seconds:.0f} s"
        elif status not in (0, SKIPPED):
            outcome.detail = f"the client ended with {status}"
        if not self._end():
            outcome.result, outcome.detail = "no workload", "the source was shut down"
        elif self._blind:
            outcome.detail += f" not followed behind statement {self._lost_at}"
        return outcome

    def save(self, folder: Path) -> None:
        """Keep the statements, what the client said, and the task's log."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [b"# %d\n%s;\n" % (number, text) for number, text in self._statements]
        (folder / "statements.sql").write_bytes(b"".join(lines))
        (folder / "client.txt").write_text(self._client)
        (folder / "task.log").write_text(self._logs)

    def _look(self, statement: bytes) -> bool:
        """Compare before something is destroyed; after trouble, begin anew with a next table."""
        if not self._blind:
            if destroys(statement):
                self._compare()
        elif len(self._troubles) <= MOST_TASKS and (follower := self._anew()) is not None:
            self._follower, self._blind = follower, False
        return True

    def _compare(self) -> None:
        """Wait for the task and compare all tables, unless nothing has happened since."""
        place = self._end()
        if place in ("", self._compared):
            return
        trouble = self._follower.caught_up()
        if trouble is not None:
            self._troubles.append(trouble)
            self._blind, self._lost_at = True, len(self._statements)
            self._logs += self._follower.log()
            return
        self._compared = place
        self._count += 1
        for difference in self._comparison.differences():
            if (difference.table, difference.kind) == self._as_a_replica:
                continue
            seen = replace(difference, statements=len(self._statements))
            self._differences.setdefault(f"{seen.table} {seen.kind}", seen)

    def _end(self) -> str:
        """Where the source's binlog ends; empty when a file has shut the server down."""
        try:
            return str(end_of(self._source))
        except pymysql.err.OperationalError:
            return ""

    def _execute(self, package: TestPackage, file: Path, socket: Path) -> int:
        var = self._source.folder / "var"
        (var / "tmp").mkdir(parents=True, exist_ok=True)
        give_to_server(var)
        environment = {
            **package.environment,
            "MYSQL_TEST_DIR": str(package.folder),
            "MYSQLTEST_VARDIR": str(var),
            "MYSQL_TMP_DIR": str(var / "tmp"),
            "MASTER_MYSOCK": str(socket),
            "MASTER_MYPORT": str(self._source.port),
            "MYSQL_CHARSETSDIR": "/usr/share/mysql/charsets",
            "MYSQL": f"mariadb --no-defaults --user=root --socket={socket}",
        }
        command = [
            *(str(package.program), "--no-defaults", "--silent", "--continue-on-error"),
            *("--skip-ssl", "--user=root", "--host=localhost", f"--socket={socket}"),
            *(f"--basedir={package.folder}/", f"--suite-dir={package.suite_of(file)}/"),
            *(f"--tmpdir={var / 'tmp'}", f"--logdir={var}", "--database=test"),
            *("--max-connections=512", f"--test-file={file}"),
        ]
        process = subprocess.Popen(
            command,
            cwd=package.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        self._client = output.decode("utf-8", "replace")[-4000:]
        return process.returncode


def _globals(server: MariaDBServer) -> dict[str, str]:
    rows = server.execute("SHOW GLOBAL VARIABLES")
    own = ("gtid_", "innodb_", "last_", "port", "timestamp")
    return {name: value for name, value in rows if not name.startswith(own)}


def _drop_schemas(server: MariaDBServer) -> None:
    rows = server.execute("SELECT schema_name FROM information_schema.schemata")
    for name in _users_own(row[0] for row in rows):
        sql = f"DROP DATABASE IF EXISTS `{name.replace('`', '``')}`"
        try:
            server.execute("SET foreign_key_checks = 0", sql)
        except pymysql.err.OperationalError:
            # A file of SELECT … INTO OUTFILE is in the way; the schema is gone all the same.
            for path in (server.folder / "data" / name).glob("*"):
                path.unlink()
            server.execute(sql)


def _users_own(schemas: Iterator[str]) -> list[str]:
    return [name for name in schemas if name not in SYSTEM]

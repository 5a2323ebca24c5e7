"""gh-ost and pt-online-schema-change run on shards, and rows that are written meanwhile.

Without the tools, `gh_ost_steps` and `pt_osc_steps` are their statements, where nobody writes.

pt-online-schema-change is in Debian's percona-toolkit; gh-ost is used where it is on the PATH.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS

PATIENCE = 120.0
COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(20))"
CHANGE = "ADD COLUMN c INT DEFAULT 7"


def tool(name: str) -> str:
    """The program; without it the test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on the PATH")
    return found


def pt_osc(merging: Merging, table: str, change: str = CHANGE) -> list[str]:
    """The command that changes a table of the first source by pt-online-schema-change."""
    server = merging.source
    return [
        tool("pt-online-schema-change"),
        *("--execute", "--recursion-method=none", "--no-check-replication-filters"),
        *("--chunk-size=50", "--no-version-check", "--alter", change),
        f"h=127.0.0.1,P={server.port},u={server.user},D={merging.database},t={table}",
    ]


def gh_ost(merging: Merging, table: str, folder: Path, change: str = CHANGE) -> list[str]:
    """The command that changes a table of the first source by gh-ost."""
    server = merging.source
    program = tool("gh-ost")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    newer = "-skip-metadata-lock-check" in told.stdout + told.stderr
    return [
        program,
        *("--host=127.0.0.1", f"--port={server.port}", f"--user={server.user}"),
        *(f"--database={merging.database}", f"--table={table}", f"--alter={change}"),
        *("--allow-on-master", "--assume-rbr", "--execute", "--chunk-size=50"),
        *("--initially-drop-ghost-table", "--initially-drop-old-table"),
        f"--serve-socket-file={folder}/{table}.sock",
        *("--initially-drop-socket-file", "--exact-rowcount=false"),
        *(("--skip-metadata-lock-check",) if newer else ()),
    ]


def run(command: list[str]) -> None:
    """Run a command to its end, which must be a good one."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def begun(command: list[str]) -> subprocess.Popen[bytes]:
    """A command that runs on its own from here on."""
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a command; its exit code."""
    with anyio.fail_after(PATIENCE):
        while (code := process.poll()) is None:
            await anyio.sleep(LOOK_SECONDS)
    return code


async def until(condition: Callable[[], bool]) -> None:
    """Look until it holds."""
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(LOOK_SECONDS)


class Writer:
    """Writes rows to the shards on and on, each with a new key."""

    def __init__(self, merging: Merging, shards: int) -> None:
        self._merging = merging
        self._shards = shards
        self._next = 1
        self._round = threading.Lock()

    def write(self, rounds: int) -> None:
        """So many rounds of changes on each shard."""
        for _ in range(rounds):
            with self._round:
                for shard in range(1, self._shards + 1):
                    key = self._next * 10 + shard
                    self._merging.do(
                        f"INSERT INTO x_{shard} (id, v) VALUES ({key}, 'new')",
                        f"UPDATE x_{shard} SET v = 'changed' WHERE id % 3 = 0 LIMIT 20",
                        f"DELETE FROM x_{shard} WHERE id % 7 = 0 AND id < {key} LIMIT 2",
                    )
                self._next += 1

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Write in a thread."""
        stop = threading.Event()
        errors: list[Exception] = []

        def work() -> None:
            try:
                while not stop.wait(0.02):
                    self.write(1)
            except Exception as error:  # noqa: BLE001
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert not errors, errors

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing for a while."""
        with self._round:
            yield


async def begin_gh_ost(
    merging: Merging, writer: Writer, command: list[str], added: str = "c"
) -> subprocess.Popen[bytes]:
    """A gh-ost that has begun: its ghost of ``x_1`` has the column that is ``added``.

    On MySQL 9.7 and MariaDB 11.8 it has lost a row of the shard that was committed while it began:
    there nothing is written.
    """

    def has_begun() -> bool:
        if process.poll() is not None:
            return True
        # In one statement: the ghost may take its place in between.
        there = merging.on(
            merging.source,
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = '_x_1_gho'"
            f" AND TABLE_SCHEMA = '{merging.database}'",
        )
        return (added,) in there

    ((version,),) = merging.on(merging.source, "SELECT VERSION()")
    if str(version).startswith(("5.", "10.")):
        process = begun(command)
        await until(has_begun)
        return process
    with writer.paused():
        process = begun(command)
        await until(has_begun)
    return process


@asynccontextmanager
async def following(merging: Merging, shards: int) -> AsyncIterator[Writer]:
    """A task that follows shards that have some rows; in the end the target must equal them."""
    merging.create("x", COLUMNS, shards=shards)
    writer = Writer(merging, shards)
    async with merging.running() as generation:
        await anyio.to_thread.run_sync(writer.write, 50)
        yield writer
        with anyio.move_on_after(PATIENCE):
            while not same(merging):
                await anyio.sleep(LOOK_SECONDS)
        await merging.caught_up(generation)
    assert same(merging), merging.differences()
    assert {row[0] for row in merging.on(merging.target, "SHOW TABLES")} == {"x"}


def columns(server: DatabaseServer, merging: Merging, table: str) -> list[object]:
    """The names of a table's columns."""
    return [row[0] for row in merging.on(server, f"SHOW COLUMNS FROM {table}")]


def same(merging: Merging) -> bool:
    """Whether the target has the columns and rows that its shards have."""
    own = columns(merging.source, merging, "x_1")
    return own == columns(merging.target, merging, "x") and merging.differences() == {}


def gh_ost_steps(table: str, change: str, *, copied: str = "id, v", counter: int = 1) -> list[str]:
    """What gh-ost does to ``table``; ``copied`` are the columns that both structures have."""
    ghost, trash, log = f"_{table}_gho", f"_{table}_del", f"_{table}_ghc"
    return [
        f"DROP TABLE IF EXISTS {ghost}, {trash}, {log}",
        f"CREATE TABLE {log} (id BIGINT AUTO_INCREMENT PRIMARY KEY, hint VARCHAR(64))",
        f"CREATE TABLE {ghost} LIKE {table}",
        f"ALTER /* gh-ost */ TABLE {ghost} {change}",
        f"ALTER /* gh-ost */ TABLE {ghost} AUTO_INCREMENT={counter}",
        f"INSERT INTO {log} VALUES (1, 'state')",
        f"INSERT IGNORE INTO {ghost} ({copied}) SELECT {copied} FROM {table}",
        f"CREATE TABLE {trash} (id INT PRIMARY KEY) COMMENT='ghost-cut-over-sentry'",
        f"DROP TABLE {trash}",
        f"RENAME TABLE {table} TO {trash}, {ghost} TO {table}",
        f"DROP TABLE {log}",
        f"DROP TABLE {trash}",
    ]


def pt_osc_steps(
    table: str, change: str, *, definition: str, copied: str = "id, v", during: str = ""
) -> list[str]:
    """What pt-online-schema-change does to ``table``, whose columns ``definition`` has.

    ``during``: a statement that comes when the triggers are there.
    """
    ghost, trash = f"_{table}_new", f"_{table}_old"
    new = ", ".join(f"NEW.{column.strip()}" for column in copied.split(","))
    return [
        f"CREATE TABLE {ghost} {definition}",
        f"ALTER TABLE {ghost} {change}",
        f"CREATE TRIGGER pt_osc_{table} AFTER INSERT ON {table} FOR EACH ROW"
        f" REPLACE INTO {ghost} ({copied}) VALUES ({new})",
        *([during] if during else ()),
        f"INSERT IGNORE INTO {ghost} ({copied}) SELECT {copied} FROM {table}",
        f"RENAME TABLE {table} TO {trash}, {ghost} TO {table}",
        f"DROP TABLE IF EXISTS {trash}",
    ]

"""Online schema changes made by the real tools, with writes going on.

pt-online-schema-change is in Debian's percona-toolkit; gh-ost is used where it is on the PATH.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging
from tests.support.running import LOOK_SECONDS

PATIENCE = 120.0
COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(20))"
CHANGE = "ADD COLUMN c INT DEFAULT 7"
MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
BOTH = pytest.mark.parametrize("source", ["mariadb_source", "mysql56_source"], indirect=True)
ALL = pytest.mark.parametrize(
    "source", ["mariadb_source", "mysql56_source", "mysql_source"], indirect=True
)


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on the PATH")
    return found


def pt_osc(merging: Merging, table: str, change: str = CHANGE) -> list[str]:
    server = merging.source
    return [
        tool("pt-online-schema-change"),
        *("--execute", "--recursion-method=none", "--no-check-replication-filters"),
        *("--chunk-size=50", "--no-version-check", "--alter", change),
        f"h=127.0.0.1,P={server.port},u={server.user},D={merging.database},t={table}",
    ]


def gh_ost(merging: Merging, table: str, folder: Path, change: str = CHANGE) -> list[str]:
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
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def begun(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Writer:
    """Writes rows to the shards on and on, each with a new key."""

    def __init__(self, merging: Merging, shards: int) -> None:
        self._merging = merging
        self._shards = shards
        self._next = 1

    def write(self, rounds: int) -> None:
        for _ in range(rounds):
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
    return [row[0] for row in merging.on(server, f"SHOW COLUMNS FROM {table}")]


def same(merging: Merging) -> bool:
    own = columns(merging.source, merging, "x_1")
    return own == columns(merging.target, merging, "x") and merging.differences() == {}


@pytest.mark.slow
@MARIADB
@pytest.mark.parametrize("mode", ["pessimistic", ""])
async def test_pt_online_schema_change(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    async with following(merging, 2) as writer:
        with writer.going_on():
            for shard in ("x_1", "x_2"):
                await anyio.to_thread.run_sync(run, pt_osc(merging, shard))


@pytest.mark.slow
@ALL
async def test_three_shards_in_three_ways(merging: Merging, tmp_path: Path) -> None:
    merging.more["shard-mode"] = "pessimistic"
    async with following(merging, 3) as writer:
        # On MySQL 9.7 gh-ost has lost a row that was committed while it began.
        running = begun(gh_ost(merging, "x_1", tmp_path))
        with anyio.fail_after(PATIENCE):
            while "c" not in columns(merging.source, merging, "x_1") + ghost_columns(merging):
                await anyio.sleep(LOOK_SECONDS)
        with writer.going_on():
            with anyio.fail_after(PATIENCE):
                while running.poll() is None:
                    await anyio.sleep(LOOK_SECONDS)
            assert running.returncode == 0
            await anyio.to_thread.run_sync(run, pt_osc(merging, "x_2"))
            merging.do(f"ALTER TABLE x_3 {CHANGE}")


@pytest.mark.slow
@BOTH
async def test_a_run_that_was_killed_and_begun_again(merging: Merging, tmp_path: Path) -> None:
    async with following(merging, 1) as writer:
        with writer.going_on():
            throttle = tmp_path / "throttle"
            throttle.touch()
            command = gh_ost(merging, "x_1", tmp_path, "ADD COLUMN wrong INT")
            first = begun([*command, f"--throttle-additional-flag-file={throttle}"])
            with anyio.fail_after(PATIENCE):
                while "wrong" not in ghost_columns(merging):
                    await anyio.sleep(LOOK_SECONDS)
            first.send_signal(signal.SIGKILL)
            first.wait()
            await anyio.to_thread.run_sync(run, gh_ost(merging, "x_1", tmp_path))
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]


@pytest.mark.slow
@BOTH
async def test_a_run_that_is_cancelled_while_it_is_throttled_and_begun_again(
    merging: Merging, tmp_path: Path
) -> None:
    async with following(merging, 1) as writer:
        with writer.going_on():
            throttle, panic = tmp_path / "throttle", tmp_path / "panic"
            throttle.touch()
            first = begun(
                [
                    *gh_ost(merging, "x_1", tmp_path, "ADD COLUMN wrong INT"),
                    f"--throttle-additional-flag-file={throttle}",
                    f"--panic-flag-file={panic}",
                ]
            )
            with anyio.fail_after(PATIENCE):
                while "wrong" not in ghost_columns(merging):
                    await anyio.sleep(LOOK_SECONDS)
                panic.touch()
                while first.poll() is None:
                    await anyio.sleep(LOOK_SECONDS)
            assert first.returncode != 0
            await anyio.to_thread.run_sync(run, gh_ost(merging, "x_1", tmp_path))
            await anyio.to_thread.run_sync(
                run, gh_ost(merging, "x_1", tmp_path, "ADD INDEX by_c (c)")
            )
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]
    assert "KEY `by_c`" in str(merging.on(merging.target, "SHOW CREATE TABLE x"))


def ghost_columns(merging: Merging) -> list[object]:
    there = merging.on(merging.source, "SHOW TABLES LIKE '\\_x\\_1\\_gho'")
    return columns(merging.source, merging, "_x_1_gho") if there else []


@pytest.mark.slow
@BOTH
async def test_a_cut_over_that_is_postponed(merging: Merging, tmp_path: Path) -> None:
    merging.more["shard-mode"] = "pessimistic"
    async with following(merging, 2) as writer:
        flag = tmp_path / "postpone"
        flag.touch()
        command = gh_ost(merging, "x_1", tmp_path)
        running = begun([*command, f"--postpone-cut-over-flag-file={flag}"])
        with anyio.fail_after(PATIENCE):
            while "c" not in ghost_columns(merging):
                await anyio.sleep(LOOK_SECONDS)
        for _ in range(4):
            await anyio.to_thread.run_sync(writer.write, 40)
            merging.source.execute("FLUSH BINARY LOGS")
        merging.do(f"ALTER TABLE x_2 {CHANGE}")
        await anyio.to_thread.run_sync(writer.write, 20)
        flag.unlink()
        with anyio.fail_after(PATIENCE):
            while running.poll() is None:
                await anyio.sleep(LOOK_SECONDS)
        assert running.returncode == 0
        await anyio.to_thread.run_sync(writer.write, 20)

"""Comparisons one after the other while rows and structures change and the task restarts.

``REPLICATOR_SOAK_SECONDS`` says how long; by itself it takes a few minutes.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.task_files import task_dict, write_task

MergingFrom = Callable[..., Merging]
SECONDS = float(os.environ.get("REPLICATOR_SOAK_SECONDS", "180"))
DDL_SECONDS = min(60.0, SECONDS / 9)
RUN_SECONDS = min(240.0, SECONDS / 4)

NUMBERS = "(id INT PRIMARY KEY, v INT, flag TINYINT, s VARCHAR(40), w DOUBLE, KEY (flag))"
KEYLESS = "(id INT, v INT, s VARCHAR(40))"
TYPES = (
    "(id INT, k VARCHAR(9), v INT, a DECIMAL(20,5), b FLOAT,"
    " c TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, d DATETIME(3),"
    " e ENUM('x','y'), f SET('p','q'), g BIT(9), h VARBINARY(20),"
    " i TIMESTAMP(6) NULL, j TIME, l TEXT CHARACTER SET utf8mb4, PRIMARY KEY (id, k))"
)
TYPED = (
    "'k', 0, {n}/7, {n}/7, 'é€ {n}', '2024-01-31 10:00:00.5', 'y', 'p,q', {n} MOD 512, x'00FF5C0A',"
    " '2024-01-31 10:00:00.000001', '-10:11:12', '{{\"a\": [{n}, 2.5], \"b\": null}}'"
)
SHARDS = tuple(f"{table}_{n}" for table in "xymzt" for n in (1, 2))
HOT = 300
"""Rows of a shard that clients change; behind them it has as many that nobody changes."""

Step = tuple[str, str]
"""A target, and what is done to each of its shards."""

EVERYWHERE: Sequence[Step] = (
    ("x", "ADD COLUMN c INT DEFAULT 7"),
    ("z", "ADD COLUMN c VARCHAR(9) DEFAULT 'z'"),
    ("x", "MODIFY c BIGINT"),
    ("t", "MODIFY c MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
    ("x", "ADD INDEX by_c (c)"),
    ("x", "DROP INDEX by_c"),
    ("z", "DROP COLUMN c"),
    ("x", "DROP COLUMN c"),
    ("t", "ADD COLUMN m DECIMAL(9,2) DEFAULT 1.5"),
    ("t", "DROP COLUMN m"),
)
COORDINATED: Sequence[Step] = (
    ("x", "ADD COLUMN n CHAR(9) CHARACTER SET latin1 NOT NULL DEFAULT 'é' AFTER id"),
    ("t", "MODIFY a DECIMAL(24,6)"),
    ("x", "CHANGE n o CHAR(90) CHARACTER SET latin1 NOT NULL DEFAULT 'o'"),
    ("t", "MODIFY a DECIMAL(20,5)"),
    ("x", "DROP COLUMN o"),
    ("x", "ADD COLUMN g INT AS (v+1) STORED, ALTER flag SET DEFAULT 1"),
    ("x", "DROP COLUMN g"),
)
"""What shards can't differ by."""


def first_key(number: int, table: str) -> int:
    """The keys of a shard begin here; no two have one in common."""
    return 100_000 * number + 10_000 * SHARDS.index(table)


def inserted(table: str, first: int, last: int) -> str:
    values = {"z": "0, 'old'", "t": TYPED}.get(table[0], "0, 0, 'old', 0.5")
    rows = ",".join(f"({n}, {values.format(n=n)})" for n in range(first, last))
    columns = {"z": "id, v, s", "t": "id, k, v, a, b, c, d, e, f, g, h, i, j, l"}
    names = columns.get(table[0], "id, v, flag, s, w")
    return f"INSERT INTO {table} ({names}) VALUES {rows}"


class Writers:
    """Clients of all sources: mixed rows, values that flip, hot rows, and schema changes."""

    def __init__(self, merging: Merging, steps: Sequence[Step]) -> None:
        self._merging = merging
        self._steps = steps
        self.ended = threading.Event()
        self.calm = threading.Event()
        """No further schema change begins."""
        self.written = 0
        self.changes = 0
        self._pool = ThreadPoolExecutor()
        self._clients: list[Future[None]] = []

    def start(self) -> None:
        self._changing = self._pool.submit(self._ddl)
        self._clients.append(self._changing)
        for number, server in enumerate(self._merging.sources.values()):
            self._clients.append(self._pool.submit(self._write, server, number))

    def check(self) -> None:
        """Raises what a client did that has ended."""
        for client in self._clients:
            if client.done():
                client.result()

    def calm_down(self) -> None:
        """End the last schema change. Raises what its client did."""
        self.calm.set()
        self._changing.result()

    def end(self) -> None:
        """Raises what a client did."""
        self.ended.set()
        for client in self._clients:
            client.result()

    def _write(self, server: DatabaseServer, number: int) -> None:
        chance = random.Random(number)
        while not self.ended.is_set():
            for statements in self._transactions(chance, number):
                self._merging.on(server, *statements)
                self.written += len(statements)
            time.sleep(0.2)

    def _transactions(self, chance: random.Random, number: int) -> Iterator[list[str]]:
        table = chance.choice(("x_1", "x_2", "y_1", "y_2"))
        first = first_key(number, table)
        key = first + chance.randrange(HOT - 20)
        yield [
            f"UPDATE {table} SET v=v+1, w=w/3 WHERE id BETWEEN {key} AND {key + 9}",
            f"UPDATE {table} SET flag=1-flag WHERE id BETWEEN {first} AND {first + 20}",
            f"DELETE FROM {table} WHERE id={key}",
            inserted(table, key, key + 1),
            f"REPLACE INTO {table} (id, v, flag, s, w) VALUES ({key + 1}, 1, 1, 'é ', -0.5)",
            # Another key, and back; another shard, and back.
            f"UPDATE {table} SET id={first + 9000} WHERE id={key + 2}",
            f"UPDATE {table} SET id={key + 2} WHERE id={first + 9000}",
        ]
        # No lock is ever open there: a row that moves behind one would wait for its deletion.
        one, other = "m_1", "m_2"
        moved = first_key(number, one) + chance.randrange(HOT)
        yield [
            "BEGIN",
            f"DELETE FROM {one} WHERE id={moved}",
            inserted(other, moved, moved + 1),
            "COMMIT",
            f"UPDATE {other} SET v=v+1 WHERE id={moved}",
            "BEGIN",
            f"DELETE FROM {other} WHERE id={moved}",
            inserted(one, moved, moved + 1),
            "COMMIT",
        ]
        first = first_key(number, "z_1")
        yield [
            inserted("z_1", first, first + 3),
            f"UPDATE z_1 SET v=v+1 WHERE id={first + chance.randrange(3)} LIMIT 2",
            f"DELETE FROM z_1 WHERE id={first + chance.randrange(3)} LIMIT 3",
        ]
        first = first_key(number, "t_1")
        key = first + chance.randrange(HOT - 1)
        yield [
            f"UPDATE t_1 SET a=a+0.00001, b=b*1.1, c=CONCAT('ü', {key}), g=g^1, h=x'00',"
            f" l=CONCAT('{{\"a\": ', v, '}}') WHERE id={key}",
            f"UPDATE t_1 SET k=IF(k='k','l','k'), d=NOW(3), i=NOW(6) WHERE id={key + 1}",
            f"UPDATE t_1 SET e=NULL, f='', v=v+1, j='100:00:00' WHERE id={first}",
        ]

    def _ddl(self) -> None:
        """One step after the other; each second one opens a lock until the next step's time."""
        steps = itertools.cycle(self._steps)
        while not self.ended.wait(DDL_SECONDS) and not self.calm.is_set():
            table, change = next(steps)
            shards = [(s, f"{table}_{n}") for s in self._merging.sources.values() for n in (1, 2)]
            for at, (server, shard) in enumerate(shards):
                self._merging.on(server, f"ALTER TABLE {shard} {change}")
                self.ended.wait(DDL_SECONDS if at == 0 and self.changes % 2 else 1)
            self.changes += 1


def task_file(merging: Merging, folder: Path, mode: str) -> Path:
    db = merging.database
    values = task_dict(db, merging.sources, merging.target, schema=db, target_schema=db)
    values |= {"task-mode": "all", "shard-mode": mode}
    values["routes"] = {
        table: {
            "schema-pattern": db,
            "table-pattern": f"{table}_?",
            "target-schema": db,
            "target-table": table,
        }
        for table in "xymzt"
    }
    values["validators"] = {"full": {"mode": "full", "validate-interval": "30s"}}
    # Otherwise, the task would correct the rows before they are compared.
    values["on-unproven-change"] = "stop"
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
        instance["route-rules"] = list("xymzt")
        instance["validator-config-name"] = "full"
    return write_task(folder, values)


class Restarts:
    """The process of a task, ended again and again: in order, and by being killed."""

    def __init__(self, file: Path, folder: Path, task: str) -> None:
        self._file, self._folder, self._task = file, folder, task
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._restarts: Future[None] | None = None
        self._resources = ExitStack()
        self.count = 0
        self.process = self._begin()

    def start(self) -> None:
        self._restarts = self._pool.submit(self._restart)

    def check(self) -> None:
        """Raises what went wrong."""
        if self._restarts is not None and self._restarts.done():
            self._restarts.result()

    def stop(self) -> None:
        """Leave the last one running. Raises what went wrong."""
        self._ended.set()
        if self._restarts is not None:
            self._restarts.result()

    def close(self) -> None:
        self._ended.set()
        self._pool.shutdown()
        self._resources.close()

    def _begin(self) -> TaskProcess:
        process = self._resources.enter_context(task_process(self._file, self._folder))
        process.until_state(self._task, "running")
        self.count += 1
        return process

    def _restart(self) -> None:
        while not self._ended.wait(RUN_SECONDS):
            if self.count % 2:
                self.process.process.send_signal(signal.SIGTERM)
                assert self.process.process.wait(PATIENCE) == 0
            self._resources.close()
            # For a while there is none.
            self._ended.wait(10)
            self.process = self._begin()


class Soak:
    """The comparisons, and what they found."""

    def __init__(self, merging: Merging, file: Path, spark: SparkContext, folder: Path) -> None:
        self._merging = merging
        self.task = config.load_task(file)
        self._spark = spark
        self._folder = folder
        self.counts: Counter[str] = Counter()
        self.alarms: list[Any] = []
        self.spoiled: Counter[str] = Counter()
        """By target, rows that differ."""
        self.told = ""

    async def compare(self, writers: Writers, restarts: Restarts) -> list[TargetComparison]:
        """Compare once, and note what is other than it has to be."""

        async def context() -> SparkContext:
            return self._spark

        results = await TargetComparer(self.task, CompareOptions(chunk_rows=3000), context).run()
        self.counts["comparisons"] += 1
        for result in results:
            self.counts[f"{result.target.table} unsettled"] += result.unsettled
            self.counts[f"{result.target.table} held"] += result.held
            wrong = result.differing > self.spoiled[result.target.table]
            if wrong or result.structure or result.failure:
                self.alarms.append(result)
        self.counts["starts"] = restarts.count
        errors = await anyio.to_thread.run_sync(self.validation_errors, restarts.process)
        self.counts["validations"] += errors is not None
        if errors and not self.spoiled:
            shown = restarts.process.cli("validation", "show-error", self.task.name)
            self.alarms.append(shown.stdout)
        self._tell(writers)
        return results

    def until_errors(self, process: TaskProcess) -> None:
        # A row that was validated before it was spoiled is not among them.
        process.until(lambda: bool(self.validation_errors(process)), "errors of the validation")

    def validation_errors(self, process: TaskProcess) -> int | None:
        status = process.status(self.task.name)
        return status.validation.errors if status and status.validation else None

    def _tell(self, writers: Writers) -> None:
        text = (
            f"{time.strftime('%H:%M:%S')} {dict(self.counts)}, {writers.written} statements,"
            f" {writers.changes} schema changes, alarms: {self.alarms}\n"
        )
        self.told = text
        (self._folder / "soak.log").write_text(text)

    async def spoil(self, process: TaskProcess) -> None:
        """Rows that nobody changes, and one that its shard has changed just before."""
        merging = self._merging
        await anyio.to_thread.run_sync(process.until_applied, self.task.name, merging.sources)
        for table in "xymzt":
            for number, server in enumerate(merging.sources.values()):
                key = first_key(number, f"{table}_1") + HOT
                change = f"UPDATE {table}_1 SET v=v+1 WHERE id={key}"
                merging.on(server, change)
                await anyio.to_thread.run_sync(
                    process.until_applied, self.task.name, merging.sources
                )
                merging.on(
                    merging.target,
                    f"UPDATE {table} SET v=v+100 WHERE id={key}",
                    f"DELETE FROM {table} WHERE id={key + 1}",
                    inserted(table, key + 5000, key + 5001),
                )
                # A row without a key that has another value is one too few, and one too many. No
                # shard tells whether a row that is too many waits for a lock.
                self.spoiled[table] += {"z": 4, "y": 2}.get(table, 3)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 1800)
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_no_false_alarm_while_everything_changes(
    merging_from: MergingFrom,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    for table, columns in {
        "x": NUMBERS,
        "y": NUMBERS,
        "m": NUMBERS,
        "z": KEYLESS,
        "t": TYPES,
    }.items():
        merging.create(table, columns, shards=2)
    for number, server in enumerate(merging.sources.values()):
        for table in SHARDS:
            first = first_key(number, table)
            merging.on(server, inserted(table, first, first + 2 * HOT))
    file = task_file(merging, tmp_path, mode)
    soak = Soak(merging, file, spark, tmp_path)
    writers = Writers(merging, (*EVERYWHERE, *(COORDINATED if mode == "pessimistic" else ())))
    restarts = await anyio.to_thread.run_sync(Restarts, file, tmp_path, soak.task.name)
    process = restarts.process
    monkeypatch.setenv("XDG_RUNTIME_DIR", process.env["XDG_RUNTIME_DIR"])
    until = time.monotonic() + SECONDS
    try:
        await anyio.to_thread.run_sync(process.until_applied, soak.task.name, merging.sources)
        # The lock of y is open to the end: only one shard has the change.
        merging.on(mariadb_source, "ALTER TABLE y_2 ADD COLUMN late INT DEFAULT 1")
        if mode == "optimistic":
            merging.on(mysql_source, "ALTER TABLE y_2 ADD COLUMN late INT DEFAULT 2")
        writers.start()
        restarts.start()
        while time.monotonic() < until:
            await soak.compare(writers, restarts)
            writers.check()
            restarts.check()
        await anyio.to_thread.run_sync(writers.calm_down)
        await anyio.to_thread.run_sync(restarts.stop)
        process = restarts.process
        await soak.spoil(process)
        results = await soak.compare(writers, restarts)
        found = {r.target.table: r.differing for r in results if r.differing}
        await anyio.to_thread.run_sync(soak.until_errors, process)
    finally:
        writers.end()
        restarts.close()
        sys.stdout.write(soak.told)
    assert soak.counts["comparisons"] > 1
    assert writers.changes
    assert not soak.alarms
    assert found == soak.spoiled

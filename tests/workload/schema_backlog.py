"""Measure how fast a task works off a backlog of schema changes.

``python -m tests.workload.schema_backlog``, from the project's folder. Three shards of two sources
make the same changes (ADD, MODIFY, CREATE INDEX, DROP) with a few rows in between, while the task
does not run. Then the task starts, and the items that it executes are counted, until the target
has everything; the rows must be equal in the end. The *floor* is the time of the statements alone,
on an empty copy of the target.

``--pace statement``: each change is made by all shards before the next one; ``shard``: the first
shard makes all of them before the second one begins.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.processes import TaskProcess, place_of, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task
from tests.workload.histories import SERVERS

SCHEMA, TARGET = "backlog", "merged"
MODES = ("pessimistic", "optimistic", "")
LOOK_SECONDS = 0.5
PATIENCE = 3600.0
CHANGES = (
    "ALTER TABLE {t} ADD COLUMN c{n} INT DEFAULT {n}",
    "ALTER TABLE {t} MODIFY COLUMN c{n} BIGINT DEFAULT {n}",
    "CREATE INDEX i{n} ON {t} (c{n})",
    "ALTER TABLE {t} DROP COLUMN c{n}",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown; times in seconds, from the first row read to the last one applied."""

    mode: str
    pace: str
    items: int
    shards: int
    seconds: float
    floor: float
    restarts: int
    cpu: Mapping[str, float]
    events: Mapping[str, int]

    @property
    def rate(self) -> float:
        return self.items / self.seconds


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard of each of the targets ``t0``, ``t1`` …"""

    number: int
    server: DatabaseServer

    def table(self, target: int) -> str:
        return f"{SCHEMA}.t{target}_{self.number}"


def statements(changes: int, tables: int) -> Iterator[tuple[int, str]]:
    """The changes, each with the number of its target."""
    for number in range(changes):
        target = number % tables
        own = number // tables
        yield target, CHANGES[own % len(CHANGES)].replace("{n}", str(own // len(CHANGES)))


def prepare(sources: Mapping[str, DatabaseServer], target: DatabaseServer) -> None:
    """Remove what a former run has left."""
    for server in (*sources.values(), target):
        for schema in (SCHEMA, TARGET, f"{TARGET}_meta", "alone"):
            server.execute(f"DROP DATABASE IF EXISTS {schema}")
    for server in sources.values():
        server.execute(f"CREATE DATABASE {SCHEMA}")
    for schema in (TARGET, "alone"):
        target.execute(f"CREATE DATABASE {schema}")


def write(shard: Shard, target: int, first: int, rows: int) -> None:
    """Insert rows into a shard, one transaction each."""
    for number in range(first, first + rows):
        key = number * 10 + shard.number
        shard.server.execute(f"INSERT INTO {shard.table(target)} (id, a) VALUES ({key}, {key})")


def make_changes(
    shards: Sequence[Shard], changes: Sequence[tuple[int, str]], pace: str, rows: int
) -> None:
    """Let the shards make all changes, each followed by rows."""
    orders = (
        [(n, shard) for n in range(len(changes)) for shard in shards]
        if pace == "statement"
        else [(n, shard) for shard in shards for n in range(len(changes))]
    )
    for number, shard in orders:
        target, sql = changes[number]
        shard.server.execute(sql.replace("{t}", shard.table(target)))
        write(shard, target, (number + 1) * max(rows, 1), rows)


def floor_of(target: DatabaseServer, changes: Sequence[tuple[int, str]], tables: int) -> float:
    """The seconds that the statements take by themselves."""
    for number in range(tables):
        target.execute(f"CREATE TABLE alone.t{number} (id BIGINT PRIMARY KEY, a INT)")
    started = time.monotonic()
    for table, sql in changes:
        target.execute(sql.replace("{t}", f"alone.t{table}"))
    return time.monotonic() - started


def until_applied(task: TaskProcess, name: str, sources: Mapping[str, DatabaseServer]) -> None:
    """Wait until everything that the sources have logged is on the target."""
    ends = {source: end_of(server).key for source, server in sources.items()}

    def applied() -> bool:
        status = task.status(name)
        if status is None:
            return False
        assert status.error is None or status.error.event == "task.restart", status.error
        assert not status.blocked, status.blocked
        # Unlike the position applied, it is before all held rows.
        places = {s.source: s.saved_position for s in status.sources}
        return not status.locks and all(
            places.get(source) and place_of(places[source]).key >= end
            for source, end in ends.items()
        )

    deadline = time.monotonic() + PATIENCE
    while not applied():
        assert task.process.poll() is None, f"the task ended:\n{task.tail()}"
        assert time.monotonic() < deadline, f"not applied in {PATIENCE} s:\n{task.tail()}"
        time.sleep(LOOK_SECONDS)


def task_values(
    sources: dict[str, DatabaseServer], target: DatabaseServer, mode: str, tables: int
) -> dict[str, Any]:
    """Return the task file: each target has a shard in each schema."""
    values = task_dict(
        SCHEMA, sources, target, schema=SCHEMA, target_schema=TARGET, **{"shard-mode": mode}
    )
    values["routes"] = {
        f"r{number}": {
            "schema-pattern": SCHEMA,
            "table-pattern": f"t{number}_*",
            "target-schema": TARGET,
            "target-table": f"t{number}",
        }
        for number in range(tables)
    }
    for instance in values["mysql-instances"]:
        instance["route-rules"] = list(values["routes"])
    return values


def run(given: argparse.Namespace, mode: str, pace: str, folder: Path) -> Outcome:
    """Make a backlog, and measure a task that works it off."""
    with contextlib.ExitStack() as servers:
        kinds = [SERVERS[given.source], SERVERS[given.source], SERVERS[given.target]]
        first, second, target = (servers.enter_context(kind()) for kind in kinds)
        sources = {"a": first, "b": second}
        prepare(sources, target)
        shards = [Shard(0, first), Shard(1, first), Shard(2, second)]
        for shard in shards:
            for number in range(given.tables):
                shard.server.execute(
                    f"CREATE TABLE {shard.table(number)} (id BIGINT PRIMARY KEY, a INT)"
                )
        for number in range(given.tables):
            target.execute(f"CREATE TABLE {TARGET}.t{number} (id BIGINT PRIMARY KEY, a INT)")
        values = task_values(sources, target, mode, given.tables)
        file = write_task(folder, values)
        with task_process(file, folder) as task:
            task.until_logged("task.running")
            for shard in shards:
                for number in range(given.tables):
                    write(shard, number, 0, 1)
            until_applied(task, SCHEMA, sources)
            task.cli("stop", SCHEMA)
            task.process.wait()
        changes = list(statements(given.changes, given.tables))
        if not given.lockstep:
            make_changes(shards, changes, pace, given.rows)
        floor = floor_of(target, changes, given.tables)
        (folder / "task.log").unlink()
        with task_process(file, folder) as task:
            task.until_logged("task.running")
            before = cpu_seconds()
            if given.lockstep:
                make_changes(shards, changes, pace, given.rows)
            until_applied(task, SCHEMA, sources)
            events = task.events()
            cpu = cpu_seconds()
        if given.keep is not None:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "task.log", given.keep / f"{mode or 'none'}-{pace}.log")
        for number in range(given.tables):
            wanted = union_of([(s.server, s.table(number)) for s in shards], "*")
            there = rows_of(target, f"{TARGET}.t{number}", "*")
            assert wanted == there, f"t{number}: {wanted - there} missing, {there - wanted} more"
        counts = Counter(event["event"] for event in events)
        begun = [e for e in events if e["event"] == "source.connected"]
        ended = [e for e in events if e["event"] in ("ddl.executed", "lock.resolved")]
        return Outcome(
            mode,
            pace,
            len(changes),
            len(shards),
            round(_time(ended[-1]) - _time(begun[0]), 2),
            round(floor, 2),
            counts["source.restarting"],
            {name: round(cpu[name] - before[name], 2) for name in cpu if cpu[name] > before[name]},
            dict(counts.most_common(14)),
        )


def cpu_seconds() -> Counter[str]:
    """Return the processor time that the processes below this one have used so far, by program."""
    parents: dict[int, int] = {}
    used: dict[int, tuple[str, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = Path(entry, "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            # After the name, which may have anything: state, parent …, user and system time.
            name, _, rest = stat.partition("(")[2].rpartition(")")
            fields = rest.split()
            parents[int(entry.name)] = int(fields[1])
            ticks = int(fields[11]) + int(fields[12])
            used[int(entry.name)] = name, ticks / os.sysconf("SC_CLK_TCK")
    found: Counter[str] = Counter()
    for process, (name, seconds) in used.items():
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() != process:
            found[name] += seconds  # type: ignore[assignment]
    return found


def _time(event: Mapping[str, str]) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def main() -> int:
    """Read the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.workload.schema_backlog")
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2, help="after each change, in each shard")
    parser.add_argument("--modes", nargs="+", default=["pessimistic"], choices=MODES)
    parser.add_argument("--paces", nargs="+", default=["statement"], choices=["statement", "shard"])
    parser.add_argument("--lockstep", action="store_true", help="while the task runs")
    parser.add_argument("--source", default="mariadb", choices=[k for k in SERVERS if k != "tidb"])
    parser.add_argument("--target", default="mariadb", choices=SERVERS)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    for mode in given.modes:
        for pace in given.paces:
            folder = Path(tempfile.mkdtemp(prefix="backlog-"))
            try:
                outcome = run(given, mode, pace, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            found = asdict(outcome) | {"items a second": round(outcome.rate, 2)}
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

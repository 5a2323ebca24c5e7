"""An application's history on three shards that a task merges, and what became of each table."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from replicator.ddl.parser.statement import ParsedStatement, TableRole
from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.processes import TaskProcess, place_of, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import endpoint, start_of, write_task
from tests.workload.comparison import (
    COLUMNS,
    FOREIGN_KEYS,
    KEYS,
    sense_of,
    sense_of_key,
    without_implicit,
)
from tests.workload.generated_rows import RowMaker, keys_of
from tests.workload.scripts import Script, adds_rows, copies_rows

NAME = "history"
TARGET = "merged"
TABLES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = '{}' AND table_type = 'BASE TABLE'"
)
QUIET_SECONDS = 15.0
"""A task that changes nothing of its status for so long has no more to do."""
PAUSE_SECONDS = 2.0
"""The same between two files, where it does not matter whether the task is done."""
LOOK_SECONDS = 0.4
DONE_LOOKS = 4
"""Looks in a row that find everything applied, before it counts as such."""
START_SECONDS = 120.0
COMPARE_SECONDS = 900.0
FOREIGN_KEY_FAILS = 1452


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard: its number, and its schema at its server."""

    number: int
    server: DatabaseServer
    schema: str


@dataclass
class TableOutcome:
    """What became of one table: `equal`, `differs`, `blocked` by a fault, or `locked`."""

    table: str
    result: str
    detail: str = ""


@dataclass
class HistoryOutcome:
    """What became of a run. `refused`: statements that the source itself refused."""

    mode: str
    pace: str
    statements: int = 0
    rows: int = 0
    seconds: float = 0.0
    refused: list[str] = field(default_factory=list)
    tables: list[TableOutcome] = field(default_factory=list)


class HistoryRun:
    """A running task that merges the schemas ``h_1`` and ``h_2`` of one source, ``h_3`` of another.

    Args:
        mode: the shard-mode.
        wait: whether to wait for the task after each file; else it gets the whole history at once.
    """

    def __init__(
        self,
        sources: Mapping[str, DatabaseServer],
        target: DatabaseServer,
        mode: str,
        *,
        wait: bool = True,
    ) -> None:
        self._sources = sources
        self._target = target
        self._mode = mode
        self._wait = wait
        first, last = sources.values()
        self.shards = [Shard(0, first, "h_1"), Shard(1, first, "h_2"), Shard(2, last, "h_3")]
        self.rows = RowMaker(len(self.shards))
        self._resources = contextlib.ExitStack()
        self._sessions: dict[int, Connection[Cursor]] = {}
        self._task: TaskProcess
        self.folder = Path()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="history-"))
        self._resources.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for server in (*self._sources.values(), self._target):
            for schema in ("h_1", "h_2", "h_3", TARGET, f"{TARGET}_meta"):
                server.execute("SET foreign_key_checks = 0", f"DROP DATABASE IF EXISTS {schema}")
        for shard in self.shards:
            shard.server.execute(f"CREATE DATABASE {shard.schema}")
        self._target.execute(f"CREATE DATABASE {TARGET}")
        file = write_task(self.folder, self._values())
        self._task = self._resources.enter_context(task_process(file, self.folder))
        # Its checks would meet tables that come and go.
        self._task.until(self._runs, "the task's start", START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._end_sessions()
        self._resources.close()

    def _values(self) -> dict[str, Any]:
        return {
            "name": NAME,
            "task-mode": "incremental",
            "shard-mode": self._mode,
            "ignore-checking-items": ["routes"],  # there are no tables before the first file
            "meta-schema": f"{TARGET}_meta",
            "target-database": endpoint(self._target),
            "sources": [
                {"source-id": source, "from": endpoint(server)}
                for source, server in self._sources.items()
            ],
            "mysql-instances": [
                {
                    "source-id": source,
                    "meta": start_of(server),
                    "route-rules": ["merge"],
                    "block-allow-list": "only",
                    "syncer-config-name": "sync",
                }
                for source, server in self._sources.items()
            ],
            "routes": {"merge": {"schema-pattern": "h_*", "target-schema": TARGET}},
            "block-allow-list": {"only": {"do-dbs": ["h_*"]}},
            "syncers": {"sync": {"checkpoint-flush-interval": 1}},
            "spark": {"master": "local[2]"},
        }

    def run(self, scripts: Iterable[Script], pace: str) -> HistoryOutcome:
        """Execute all files, shard after shard, and compare all tables.

        Args:
            pace: ``statement`` if each statement goes over all shards before the next one,
                ``file`` if each file does.
        """
        outcome = HistoryOutcome(self._mode or "uncoordinated", pace)
        started = time.monotonic()
        for script in scripts:
            parts = [script.statements] if pace == "file" else [(one,) for one in script.statements]
            for part in parts:
                for shard in self.shards:
                    for statement in part:
                        if shard.number == 0 or not adds_rows(statement):
                            self.execute(shard, statement.sql, outcome)
                        elif copies_rows(statement):
                            self._execute_unless_alike(shard, statement, outcome)
                    self._insert({table for one in part for table in _named(one)}, outcome)
            self._end_sessions()
            if self._wait:
                self.pause()
        self.finish(outcome)
        outcome.seconds = round(time.monotonic() - started, 1)
        return outcome

    def pause(self) -> None:
        """Wait until the task has applied everything, or waits for further statements."""
        self._settle(PAUSE_SECONDS)

    def finish(self, outcome: HistoryOutcome) -> None:
        """Wait until the task has no more to do, and compare all tables."""
        status = self._settle(QUIET_SECONDS)
        compared = self._compared()
        outcome.tables = self._outcomes(self._status() or status, compared)

    def log(self) -> str:
        """Return the task's log."""
        path = self.folder / "task.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def execute(self, shard: Shard, sql: str, outcome: HistoryOutcome) -> None:
        """Execute a statement on one shard, in the session that its file has there."""
        outcome.statements += 1
        try:
            try:
                self._query(shard, sql)
            except pymysql.err.MySQLError as error:
                if error.args[0] != FOREIGN_KEY_FAILS:
                    raise
                # Generated rows have no parents in tables that get a foreign key later.
                self._query(shard, "SET foreign_key_checks = 0")
                self._query(shard, sql)
                self._query(shard, "SET foreign_key_checks = 1")
        except pymysql.err.MySQLError as error:
            outcome.refused.append(f"{shard.schema}: {error}: {' '.join(sql.split())}")

    def _execute_unless_alike(
        self, shard: Shard, statement: ParsedStatement, outcome: HistoryOutcome
    ) -> None:
        """Execute an INSERT unless it gives this shard a key that another shard has."""
        table = statement.tables[0].table
        self._query(shard, "START TRANSACTION")
        self.execute(shard, statement.sql, outcome)
        with self._sessions[shard.number].cursor() as cursor:
            own = keys_of(partial(_answer, cursor), shard.schema, table)
        others = (
            keys_of(one.server.execute, one.schema, table) for one in self.shards if one != shard
        )
        alike = any(not own.isdisjoint(other) for other in others)
        self._query(shard, "ROLLBACK" if alike else "COMMIT")

    def _query(self, shard: Shard, sql: str) -> None:
        """Execute a statement in the session of a file, which keeps the variables that it sets."""
        if shard.number not in self._sessions:
            self._sessions[shard.number] = shard.server.connect(database=shard.schema)
            self._query(shard, self.rows.own_numbers(shard.number))
        with self._sessions[shard.number].cursor() as cursor:
            cursor.execute(sql)

    def _end_sessions(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def _insert(self, tables: Iterable[str], outcome: HistoryOutcome) -> None:
        for table in sorted(tables):
            for shard in self.shards:
                outcome.rows += self.rows.insert(shard.server, shard.schema, table, shard.number)

    def _status(self) -> TaskStatus | None:
        return self._task.status(NAME)

    def _runs(self) -> bool:
        status = self._status()
        return status is not None and status.state == "running"

    def _settle(self, quiet: float) -> TaskStatus | None:
        """Wait until everything is applied, or the task changes nothing for ``quiet`` seconds."""
        ends = {source: end_of(server).key for source, server in self._sources.items()}
        last, since, done = "", time.monotonic(), 0
        while self._task.process.poll() is None:
            status = self._status()
            if status is not None:
                places = [
                    (s.source, s.complete_position, s.position, s.rows) for s in status.sources
                ]
                if not status.locks and all(
                    complete and place_of(complete).key >= ends[source]
                    for source, complete, _, _ in places
                ):
                    # A source that is restarted for a while has no locks either.
                    done += 1
                    if done == DONE_LOOKS:
                        return status
                else:
                    done = 0
                seen = f"{places} {[t.version for t in status.targets]} {status.locks}"
                if seen != last:
                    last, since = seen, time.monotonic()
            if time.monotonic() - since > quiet:
                return status
            time.sleep(LOOK_SECONDS)
        return None

    def _compared(self) -> Mapping[str, str]:
        """What `replicator compare` finds, by table: a word for each kind of difference."""
        file = str(self.folder / f"{NAME}.yaml")
        answer = self._task.cli("compare", file, "--json", patience=COMPARE_SECONDS)
        try:
            targets = json.loads(answer.stdout)["targets"]
        except (ValueError, KeyError):
            return {}
        kinds = ("structure", "failure", "missing", "extra", "different", "unsettled", "held")
        found = {}
        for target in targets:
            words = [f"{kind}: {target[kind]}" for kind in kinds if target[kind]]
            found[str(target["target"]).partition(".")[2]] = ", ".join(words)
        return found

    def _outcomes(
        self, status: TaskStatus | None, compared: Mapping[str, str]
    ) -> list[TableOutcome]:
        names = {
            str(row[0]).lower(): str(row[0])
            for shard in self.shards
            for row in shard.server.execute(TABLES.format(shard.schema))
        }
        found = []
        for table in sorted(names.values()):
            detail = self._difference(table)
            result = "differs" if detail else "equal"
            if not detail and compared.get(table):
                result, detail = "differs", f"compare says {compared[table]}"
            elif detail and compared and not compared.get(table):
                detail += " (compare says nothing)"
            reason = _reason(status, f"{TARGET}.{table}")
            if detail and reason:
                result, detail = reason
            found.append(TableOutcome(table, result, " ".join(detail.split())))
        for (table,) in self._target.execute(TABLES.format(TARGET)):
            # In the other modes a target stays when its last shard is dropped.
            if not self._mode and str(table).lower() not in names:
                reason = _reason(status, f"{TARGET}.{table}")
                found.append(TableOutcome(str(table), *(reason or ("differs", "no shard has it"))))
        if status is None:
            found.append(TableOutcome("", "died", self._task.console()[-2000:]))
        return found

    def _kept_rows(self) -> set[str]:
        """The targets that keep rows of shards which were dropped or emptied."""
        records = (json.loads(line) for line in self.log().splitlines() if "not-executed" in line)
        return {str(record["target"]) for record in records if "target" in record}

    def _difference(self, table: str) -> str:
        """How a table differs from its shards, as clients see them; empty if it does not."""
        here = [shard for shard in self.shards if _shape(shard.server, shard.schema, table)[0]]
        shapes = [_shape(shard.server, shard.schema, table) for shard in here]
        shape = _shape(self._target, TARGET, table)
        if any(type(shard.server) is not type(self._target) for shard in here):
            shape, *shapes = map(_sense, (shape, *shapes))
        for place, what in enumerate(("columns", "keys", "foreign keys")):
            if any(other[place] != shape[place] for other in shapes):
                ours, theirs = shapes[0][place], shape[place]
                left, right = ours - theirs, theirs - ours
                return f"{what}: only in the shards {sorted(left)}, only there {sorted(right)}"
        names = ", ".join(f"`{name[0]}`" for name in sorted(shape[0]))
        rows = rows_of(self._target, f"{TARGET}.`{table}`", names)
        wanted = union_of([(s.server, f"{s.schema}.`{table}`") for s in here], names)
        if rows == wanted:
            return ""
        missing, extra = wanted - rows, rows - wanted
        kept = f"{TARGET}.{table}" in self._kept_rows()
        if kept and not missing and extra.keys().isdisjoint(wanted):
            return ""
        examples = f"{[*missing][:1]!r:.200} {[*extra][:1]!r:.200}"
        return f"rows: {missing.total()} missing, {extra.total()} too many: {examples}"


def _answer(cursor: Cursor, sql: str) -> Iterable[tuple[Any, ...]]:
    cursor.execute(sql)
    return cursor.fetchall()


def _named(statement: ParsedStatement) -> set[str]:
    wanted = (TableRole.SUBJECT, TableRole.NEW_NAME)
    return {table.table for table in statement.tables if table.role in wanted}


def _shape(server: DatabaseServer, schema: str, table: str) -> tuple[Counter[Any], ...]:
    pair = f"'{schema}'", f"'{table}'"
    return tuple(Counter(server.execute(sql % pair)) for sql in (COLUMNS, KEYS, FOREIGN_KEYS))


def _sense(shape: tuple[Counter[Any], ...]) -> tuple[Counter[Any], ...]:
    columns, keys, foreign = shape
    parts = [sense_of_key(part) for part in keys.elements()]
    return (
        Counter(map(sense_of, columns.elements())),
        Counter(without_implicit(parts, {str(key[0]) for key in foreign})),
        Counter(map(sense_of_key, foreign.elements())),
    )


def _reason(status: TaskStatus | None, target: str) -> tuple[str, str] | None:
    """Why a task has not finished with a target, by its status."""
    if status is None:
        return "died", ""
    for part in status.blocked:
        if part.name == target and (part.error or part.waits_for):
            error = part.error
            text = f"{error.event}: {error.message}" if error else f"waits for {part.waits_for}"
            return "blocked", text
    for lock in status.locks:
        if lock.target == target:
            return "locked", f"{lock.state} {lock.ddl} {lock.reason}"
    error = status.error
    return ("blocked", f"{error.event}: {error.message}") if error else None

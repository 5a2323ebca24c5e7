"""A task of many targets, each with one shard at every source, of which some get faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from replicator.mysql.names import quote
from replicator.sandbox.server import DatabaseServer
from replicator.status import BlockedPart, TaskStatus
from tests.support.tasks.processes import TaskProcess
from tests.support.tasks.tables import rows_of, rows_of_each, union_of
from tests.support.tasks.task_files import task_dict, write_task

COLUMNS = "(id INT PRIMARY KEY, a INT)"


class ManyTargets:
    """Table `t` of every source goes to target `t`, whatever its name; all are in one schema.

    ``columns``: of all tables, or of each.
    """

    def __init__(
        self,
        sources: Mapping[str, DatabaseServer],
        target: DatabaseServer,
        database: str,
        folder: Path,
        *,
        tables: Iterable[str],
        mode: str,
        columns: str | Mapping[str, str] = COLUMNS,
        **more: Any,
    ) -> None:
        self.sources = dict(sources)
        self.target = target
        self.name = database
        self.folder = folder
        self.tables = tuple(tables)
        create = [
            f"CREATE TABLE {quote(table)} {columns if isinstance(columns, str) else columns[table]}"
            for table in self.tables
        ]
        for server in (*self.sources.values(), target):
            server.execute(f"CREATE DATABASE {database}")
            server.execute(*create, database=database)
        values = task_dict(
            database, self.sources, target, schema=database, target_schema=database, **more
        )
        for instance in values["mysql-instances"]:
            instance["route-rules"] = ["schema"]
        del values["routes"]["merge"]
        self.file = write_task(folder, {**values, "shard-mode": mode})

    def do(self, source: str, *statements: str) -> None:
        self.sources[source].execute(*statements, database=self.name)

    def at_target(self, *statements: str) -> None:
        self.target.execute(*statements, database=self.name)

    def full(self, table: str) -> str:
        return f"{self.name}.{quote(table)}"

    def equal(self, table: str) -> bool:
        """Whether the target holds what the shards hold together."""
        shards = [(server, self.full(table)) for server in self.sources.values()]
        return rows_of(self.target, self.full(table)) == union_of(shards)

    def until_equal(self, task: TaskProcess, *tables: str) -> None:
        """Wait until these targets, by default all, hold what their shards hold."""
        names = [self.full(table) for table in tables or self.tables]

        def equal() -> bool:
            shards = [rows_of_each(server, names) for server in self.sources.values()]
            wanted: list[Counter[tuple[object, ...]]] = [
                sum(rows, Counter()) for rows in zip(*shards, strict=True)
            ]
            return rows_of_each(self.target, names) == wanted

        task.until(equal, f"equal {names}")

    def until_blocked(self, task: TaskProcess, *names: str) -> dict[str, BlockedPart]:
        """Wait until the task runs with just these parts blocked; they, by name."""
        found: list[TaskStatus] = []

        def blocked() -> bool:
            status = task.status(self.name)
            if status is None or status.state != "running":
                return False
            found.append(status)
            return {part.name for part in status.blocked} == set(names)

        task.until(blocked, f"blocked {names}")
        return {part.name: part for part in found[-1].blocked}

    def until_held(self, task: TaskProcess, name: str, *sources: str) -> None:
        """Wait until these sources hold rows or statements of a blocked target."""

        def held() -> bool:
            status = task.status(self.name)
            parts = [part for part in status.blocked if part.name == name] if status else []
            return any({held.source for held in part.held} >= set(sources) for part in parts)

        task.until(held, f"rows held of {name}")

    def shown(self, table: str) -> str:
        """A target as the status shows it."""
        return f"{self.name}.{table}"

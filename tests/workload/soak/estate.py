"""The servers of a soak: two sources behind lines that can break, and a target behind another."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer, DatabaseServer, give_to_server, reserved_port
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.replication import ReplicatedPair
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task
from tests.workload.soak.tables import CHARACTER_SET, SOURCE_SCHEMA, TABLES, TARGET_SCHEMA

SHARDS = 8
"""Number of shards of each source."""
DISK_BYTES = {"task": 256 << 20, "target": 2 << 30}
TASK = "soak"
READER, WRITER = "reader", "writer"
"""The accounts of the task at the sources, and at the target."""
READER_RIGHTS = "SELECT, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT ON *.*"
WRITER_RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, TRIGGER, EVENT ON *.*"
)


SOURCE_KINDS: Mapping[str, type[BinlogServer]] = {
    "mariadb": MariaDBServer,
    "mariadb11": MariaDB11Server,
    "mysql": MySQLServer,
}


@dataclass(slots=True)
class Source:
    """A source of the task.

    Attributes:
        pair: the source and its replica, which exchange their roles at a failover; None if the
            source has no replica.
        line: what the task connects to.
        writing: held by whoever writes, so that a failover can wait until nobody does.
        clock: seconds by which the clock of those who write is wrong.
    """

    name: str
    line: FaultyLine
    numbers: range
    server: DatabaseServer
    pair: ReplicatedPair | None = None
    writing: threading.Lock = field(default_factory=threading.Lock)
    clock: int = 0

    def shard(self, table: str, number: int) -> str:
        return f"{SOURCE_SCHEMA}.{table}_{number}"


@dataclass(frozen=True, slots=True)
class Estate:
    """The servers, and the small file systems.

    Attributes:
        disks: a file system for the task (`task`: its relay logs and temporary files) and for the
            binlog of the target (`target`), by name. Empty if none can be made.
    """

    sources: Mapping[str, Source]
    target: DatabaseServer
    target_line: FaultyLine
    disks: Mapping[str, Path]
    metrics_port: int

    @property
    def servers(self) -> dict[str, DatabaseServer]:
        return {name: source.server for name, source in self.sources.items()}

    def prepare(self, folder: Path, mode: str, *, relay: bool) -> Path:
        """Make the shards without rows, and an empty target; return the task file."""
        for source in self.sources.values():
            source.server.execute(
                f"DROP DATABASE IF EXISTS {SOURCE_SCHEMA}",
                f"CREATE DATABASE {SOURCE_SCHEMA} {CHARACTER_SET}",
                *(
                    f"CREATE TABLE {source.shard(table.name, number)} ({table.columns})"
                    f" {CHARACTER_SET}"
                    for table in TABLES
                    for number in source.numbers
                ),
            )
        self.target.execute(
            f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}",
            f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}_meta",
            f"CREATE DATABASE {TARGET_SCHEMA} {CHARACTER_SET}",
        )
        return write_task(folder, self._task(folder, mode, relay=relay))

    def _task(self, folder: Path, mode: str, *, relay: bool) -> dict[str, Any]:
        values = task_dict(
            TASK,
            self.servers,
            self.target,
            schema=SOURCE_SCHEMA,
            target_schema=TARGET_SCHEMA,
            **{"shard-mode": mode, "task-mode": "all"},
        )
        values["metrics"] = {"listen": f"127.0.0.1:{self.metrics_port}"}
        values["target-database"] |= {
            "port": self.target_line.port,
            "user": WRITER,
            "password": "",
        }
        values["routes"] = {
            table.name: {
                "schema-pattern": SOURCE_SCHEMA,
                "table-pattern": f"{table.name}_*",
                "target-schema": TARGET_SCHEMA,
                "target-table": table.name,
            }
            for table in TABLES
        }
        for instance in values["mysql-instances"]:
            instance["route-rules"] = [table.name for table in TABLES]
            instance.pop("meta", None)
        for entry, source in zip(values["sources"], self.sources.values(), strict=True):
            entry["from"] |= {"port": source.line.port, "user": READER, "password": ""}
            entry["enable-gtid"] = source.pair is not None
            if relay:
                entry["relay-dir"] = str(self.disks.get("task", folder) / "relay")
                entry["enable-relay"] = True
                entry["purge"] = {"interval": 30, "remain-space": 0, "expires": 0}
        return values

    def differences(self) -> dict[str, int]:
        """Return the number of rows that differ, by target; equal targets are left out."""
        found = {}
        for table in TABLES:
            described = self.target.execute(f"SHOW COLUMNS FROM {TARGET_SCHEMA}.{table.name}")
            columns = ", ".join(str(row[0]) for row in described)
            shards = [
                (source.server, source.shard(table.name, number))
                for source in self.sources.values()
                for number in source.numbers
            ]
            wanted = union_of(shards, columns)
            present = rows_of(self.target, f"{TARGET_SCHEMA}.{table.name}", columns)
            if unlike := (wanted - present).total() + (present - wanted).total():
                found[table.name] = unlike
        return found


@contextmanager
def started_estate(
    source_kinds: Sequence[type[BinlogServer]], target_kind: type[DatabaseServer], folder: Path
) -> Iterator[Estate]:
    """Start the servers; the first source has a replica."""
    with ExitStack() as resources:
        disks = resources.enter_context(_file_systems(folder))

        def start(kind: type[DatabaseServer], options: Mapping[str, str | None]) -> DatabaseServer:
            return resources.enter_context(kind(options))

        options: dict[str, str | None] = {}
        if "target" in disks and issubclass(target_kind, BinlogServer):
            options = {"log_bin": str(disks["target"] / "binlog")}
        target = start(target_kind, options)
        target.execute(*_account(WRITER, WRITER_RIGHTS))
        sources = {}
        for at, kind in enumerate(source_kinds):
            pair = ReplicatedPair(start, kind) if at == 0 else None
            server = pair.primary if pair else start(kind, {})
            server.execute(*_account(READER, READER_RIGHTS))
            line = resources.enter_context(FaultyLine(server.port))
            numbers = range(at * SHARDS, (at + 1) * SHARDS)
            sources["ab"[at]] = Source("ab"[at], line, numbers, server, pair)
        target_line = resources.enter_context(FaultyLine(target.port))
        port = resources.enter_context(reserved_port("127.0.0.1")).getsockname()[1]
        yield Estate(sources, target, target_line, disks, port)


def _account(name: str, rights: str) -> tuple[str, str]:
    return f"CREATE USER '{name}'@'127.0.0.1'", f"GRANT {rights} TO '{name}'@'127.0.0.1'"


@contextmanager
def _file_systems(folder: Path) -> Iterator[dict[str, Path]]:
    """Make small file systems, in memory; none without the rights for it."""
    made: dict[str, Path] = {}
    try:
        for name, size in DISK_BYTES.items():
            disk = folder / f"disk-{name}"
            disk.mkdir()
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                break
            made[name] = disk
            if name == "target":
                give_to_server(disk)
                for parent in (folder, folder.parent):
                    parent.chmod(0o711)
        yield made
    finally:
        for disk in made.values():
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


def processes_of(server: DatabaseServer) -> list[int]:
    """Return the ids of the processes of a server, which its folder among their words tells."""
    words = os.fsencode(server.folder)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if words in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def send(processes: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes, of which some may have ended."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

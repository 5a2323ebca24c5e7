"""Servers and stopped tasks that a release has left behind: to save, and to put up again.

A source is put up with the rows that it had and the binlogs that it wrote, so that saved positions
hold; a target with its tables and the meta tables. All are MariaDBs.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer, give_to_server
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import endpoint, write_task

SOURCES = {"a": "4101", "b": "4102"}
"""The sources, with their server ids."""
SCHEMAS = {"locked": "l", "uncoordinated": "u", "copying": "c"}
"""The tasks, with the schema of their shards; that of their targets is ``m`` and this letter."""


@dataclass(frozen=True)
class SavedEstate:
    """The servers of one release, and the folder that it is saved in."""

    sources: dict[str, DatabaseServer]
    target: DatabaseServer
    folder: Path

    def on(self, source: str, schema: str, *statements: str) -> None:
        """Execute statements at a source."""
        self.sources[source].execute(*statements, database=schema)

    def task_file(self, name: str, folder: Path, **more: Any) -> Path:
        """The task file of a release, with the addresses of these servers, and with ``more``."""
        values: dict[str, Any] = yaml.safe_load((self.folder / f"{name}.yaml").read_text())
        values["target-database"] = endpoint(self.target)
        for source in values["sources"]:
            source["from"] = endpoint(self.sources[source["source-id"]])
        return write_task(folder, values | more)

    def is_equal(self, schema: str, target: str, *shards: str) -> bool:
        """Whether a target has the rows of shards, such as ``a.orders_1``."""
        parts = [shard.split(".") for shard in shards]
        wanted = union_of([(self.sources[source], f"{schema}.{t}") for source, t in parts])
        return rows_of(self.target, f"m{schema}.{target}") == wanted

    def save(self) -> None:
        """Write what the servers have to the folder. The sources are stopped by that."""
        for name, server in self.sources.items():
            folder = self.folder / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "rows.sql").write_bytes(_dump(server, *SCHEMAS.values()))
            server.stop()
            for path in sorted((server.folder / "data").glob("binlog.*")):
                shutil.copyfile(path, folder / path.name)
        schemas = [f"m{schema}" for schema in SCHEMAS.values()]
        (self.folder / "target.sql").write_bytes(_dump(self.target, *schemas, "dm_meta"))


@contextmanager
def estate(folder: Path, *, restored: bool) -> Iterator[SavedEstate]:
    """Servers with nothing in them, or as they are saved in the folder."""
    with ExitStack() as resources:
        sources: dict[str, DatabaseServer] = {
            name: resources.enter_context(MariaDBServer({"server_id": number}))
            for name, number in SOURCES.items()
        }
        target = resources.enter_context(MariaDBServer())
        if restored:
            for name, server in sources.items():
                _restore_source(server, folder / name)
            _load(target, folder / "target.sql")
        yield SavedEstate(sources, target, folder)


def _restore_source(server: DatabaseServer, folder: Path) -> None:
    _load(server, folder / "rows.sql")
    server.stop()
    data = server.folder / "data"
    for path in data.glob("binlog.*"):
        path.unlink()
    for path in folder.glob("binlog.*"):
        shutil.copyfile(path, data / path.name)
    give_to_server(server.folder)
    server.start()


def _client(program: str, server: DatabaseServer) -> list[str]:
    address = [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"]
    return [program, "--no-defaults", "--protocol=tcp", *address]


def _dump(server: DatabaseServer, *schemas: str) -> bytes:
    options = ["--skip-comments", "--hex-blob", "--skip-dump-date", "--databases", *schemas]
    return subprocess.run(
        [*_client("mariadb-dump", server), *options], check=True, stdout=subprocess.PIPE
    ).stdout


def _load(server: DatabaseServer, path: Path) -> None:
    # Not logged: the binlogs of the release have these rows.
    command = [*_client("mariadb", server), "--init-command=SET sql_log_bin=0"]
    with path.open("rb") as dump:
        subprocess.run(command, check=True, stdin=dump)

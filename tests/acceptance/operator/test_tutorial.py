"""The tutorial, executed as it stands: its statements, its files, its commands, its results."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import ER

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import LOOK_SECONDS, PATIENCE

PAGE = Path(__file__).parents[3] / "docs" / "start" / "tutorial.md"
LOCK = "show-ddl-locks"


@dataclass(frozen=True)
class Block:
    """A block of the page: its language, its title, and its lines."""

    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    found = re.findall(
        r"^```(\w*)(?: title=\"([^\"]*)\")?\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    return [Block(*block) for block in found]


@pytest.fixture
def servers(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
) -> Iterator[Mapping[str, DatabaseServer]]:
    """By the addresses of the page."""
    named = {
        "10.0.0.1:3306": mariadb_source,
        "10.0.0.2:3306": mariadb_source_full,
        "10.0.0.9:3306": mariadb_target,
    }
    yield named
    for server in named.values():
        for schema in ("shop_1", "shop_2", "shop", "dm_meta"):
            server.execute(f"DROP DATABASE IF EXISTS {schema}")
        server.execute("DROP USER IF EXISTS 'repl'@'%'", "DROP USER IF EXISTS 'writer'@'%'")


@dataclass
class Reader:
    """A reader of the page, who does what each block says."""

    servers: Mapping[str, DatabaseServer]
    folder: Path
    environment: dict[str, str]
    task: subprocess.Popen[bytes] | None = None

    def file(self, block: Block) -> None:
        """Save a file, with the addresses of these servers."""
        text = block.text
        for address, server in self.servers.items():
            host, port = address.split(":")
            text = text.replace(
                f"host: {host}, port: {port}", f"host: 127.0.0.1, port: {server.port}"
            )
        (self.folder / block.title).write_text(text)

    def terminal(self, block: Block) -> None:
        """Give the commands of a block; those that look are given until they succeed."""
        for line in block.text.splitlines():
            words = shlex.split(line)
            if words[0] == "export":
                name, _, value = words[1].partition("=")
                self.environment[name] = value
            elif block.title == "first terminal":
                self.task = subprocess.Popen(
                    self._command(words), cwd=self.folder, env=self.environment
                )
            else:
                wanted = "shop_2.orders_2" if LOCK in words else ""
                self._until(partial(self._shows, words, wanted), line)

    def result(self, block: Block, server: DatabaseServer, query: str) -> None:
        """Ask until the answer is that of the page."""
        wanted = [re.split(r"\s{2,}", line.strip()) for line in block.text.splitlines()]

        def answer() -> bool:
            try:
                rows = server.execute(query)
            except pymysql.err.ProgrammingError as error:
                if error.args[0] != ER.NO_SUCH_TABLE:
                    raise
                return False
            return [[str(value) for value in row] for row in rows] == wanted

        self._until(answer, query)

    def _shows(self, words: list[str], wanted: str) -> bool:
        done = subprocess.run(
            self._command(words),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0 and wanted in done.stdout

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        assert self.task is None or self.task.poll() is None, f"{what}: the task has ended"
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(LOOK_SECONDS)

    @staticmethod
    def _command(words: list[str]) -> list[str]:
        assert words[0] == "replicator"
        return [sys.executable, "-m", "cli", *words[1:]]


def test_the_tutorial_does_what_it_says(
    servers: Mapping[str, DatabaseServer], tmp_path: Path
) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    reader = Reader(servers, tmp_path, environment)
    asked: tuple[DatabaseServer, str] | None = None
    seen = 0
    try:
        for block in blocks():
            if block.language == "sql":
                server = servers[block.title.removeprefix("at ")]
                *statements, last = [part for part in block.text.split(";\n") if part.strip()]
                if last.startswith("SELECT"):
                    asked = (server, last)
                else:
                    server.execute(*statements, last)
            elif block.language == "yaml":
                reader.file(block)
            elif block.language == "bash":
                reader.terminal(block)
            elif asked is not None and not block.language:
                reader.result(block, *asked)
                seen += 1
        assert seen == 3
        assert reader.task is not None
        assert reader.task.wait(PATIENCE) == 0
    finally:
        if reader.task is not None and reader.task.poll() is None:
            reader.task.kill()
            reader.task.wait()

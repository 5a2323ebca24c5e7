"""`replicator init`: from the addresses of servers to a task that runs."""

from __future__ import annotations

import os
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.tasks.processes import task_process
from tests.support.tasks.tables import rows_of, union_of

PASSWORDS = {"SHARD_PASSWORD": "", "TARGET_PASSWORD": ""}


def init(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", "init", *arguments, "--output", str(folder / "task.yaml")],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def login(server: DatabaseServer) -> str:
    return f"{server.user}@{server.host}:{server.port}"


def test_the_proposed_task_merges_the_shards(
    start_server: StartServer, target_server: DatabaseServer, tmp_path: Path
) -> None:
    name = f"init{''.join(random.choices(string.ascii_lowercase, k=9))}"
    servers = [start_server(MariaDBServer) for _ in range(2)]
    shards = []
    for number, server in enumerate(servers, 1):
        schema = f"{name}_{number}"
        server.execute(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.orders_{number} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {schema}.orders_{number} VALUES ({number}, 1)",
        )
        shards.append((server, f"{schema}.orders_{number}"))
    servers[0].execute(f"CREATE TABLE {name}_1.alone_{name} (id INT PRIMARY KEY)")
    options = [word for server in servers for word in ("--source", login(server))]
    options += ["--target", login(target_server), "--name", name]
    refused = init(tmp_path, *options)
    assert "export SHARD_PASSWORD first" in refused.stderr, refused
    loops = tmp_path / "loops"
    done = init(tmp_path, *options, **PASSWORDS, NUMBA_CACHE_DIR=str(loops))
    assert done.returncode == 0, done
    # On a host without compiled loops, compiling all of them takes half a minute.
    assert {path.name.split("-")[0][:18] for path in loops.rglob("*.nbi")} == {"text_rows._convert"}
    text = (tmp_path / "task.yaml").read_text()
    assert f"#   shard-1 {name}_1.alone_{name}" in text
    assert "exists already" in init(tmp_path, *options, **PASSWORDS).stderr
    with task_process(tmp_path / "task.yaml", tmp_path, env=PASSWORDS) as task:
        task.until_state(name, "running")
        servers[0].execute(f"INSERT INTO {name}_1.orders_1 VALUES (11, 2)")

        def equal() -> bool:
            there = target_server.execute(f"SHOW DATABASES LIKE '{name}'")
            return bool(there) and tables() == {"orders"} and rows() == union_of(shards)

        def tables() -> set[object]:
            return {table for (table,) in target_server.execute(f"SHOW TABLES IN {name}")}

        def rows() -> object:
            return rows_of(target_server, f"{name}.orders")

        task.until(equal, "equal rows")
        servers[0].execute(
            f"CREATE DATABASE {name}_3",
            f"CREATE TABLE {name}_3.orders_3 (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {name}_3.orders_3 VALUES (31, 1)",
            f"ALTER DATABASE {name}_3 COMMENT 'a third schema'",
            f"INSERT INTO {name}_3.orders_3 VALUES (32, 1)",
        )
        shards.append((servers[0], f"{name}_3.orders_3"))
        task.until(equal, "equal rows of the new shard")


@pytest.mark.parametrize(
    ("source", "error"), [("host:3306", "write USER@HOST:PORT"), ("u@127.0.0.1:1", "127.0.0.1:1")]
)
def test_an_address_that_is_wrong_is_named(tmp_path: Path, source: str, error: str) -> None:
    done = init(tmp_path, "--source", source, "--target", "u@127.0.0.1:1", **PASSWORDS)
    assert done.returncode == 2, done
    assert error in done.stderr
    assert not (tmp_path / "task.yaml").exists()

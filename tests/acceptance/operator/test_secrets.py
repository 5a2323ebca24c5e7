"""Passwords and keys of a running task, looked for wherever somebody else may look."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from config.secret_key import encrypt, make_key
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

VARIABLE = "REPLICATOR_TEST_TARGET_PASSWORD"
ODD = "ä'\"\\ %@:/#?&;$`{}日😀"
SECRETS = {
    "target": f"xyzzy-of-the-target{ODD}",
    "source a": f"xyzzy-of-the-source{ODD}",
    "source b": f"xyzzy-encrypted{ODD}",
    "Spark": "xyzzy-between-executors",
}


def accounts(shards: Shards) -> None:
    for server, secret in (
        (shards.target, SECRETS["target"]),
        (shards.servers[0], SECRETS["source a"]),
        (shards.servers[1], SECRETS["source b"]),
    ):
        account = f"'{shards.database}'@'127.0.0.1'"
        quoted = secret.replace("\\", "\\\\").replace("'", "\\'")
        server.execute(
            f"CREATE USER {account} IDENTIFIED BY '{quoted}'", f"GRANT ALL ON *.* TO {account}"
        )


def write_secret_task(shards: Shards, folder: Path) -> Path:
    """Each password in another way; the folder of secrets is not one of the task's."""
    (folder / "password").write_text(SECRETS["source a"] + "\n")
    make_key(folder / "key")
    values = copy_task(shards, spark={"conf": {"spark.authenticate.secret": SECRETS["Spark"]}})
    target, (a, b) = values["target-database"], [s["from"] for s in values["sources"]]
    for server in (target, a, b):
        server["user"] = shards.database
        del server["password"]
    target["password"] = f"${{{VARIABLE}}}"
    a["password-file"] = str(folder / "password")
    b["password"] = encrypt(SECRETS["source b"], folder / "key")
    values["secret-key-file"] = str(folder / "key")
    return write_task(folder, values)


def other_secrets(folder: Path) -> dict[str, str]:
    return {**SECRETS, "the key": (folder / "key").read_text().strip()}


def told(task: TaskProcess, name: str, file: Path) -> Iterator[tuple[str, str]]:
    """What each command says, in words and in JSON."""
    for words in (
        ("status", name),
        ("status", name, "--json"),
        ("status",),
        ("schema", "list", name, "--json"),
        ("show-ddl-locks", name, "--json"),
        ("binlog", "list", name, "--json"),
        ("check", str(file), "--json", "--keys", "none"),
    ):
        done = task.cli(*words)
        yield f"replicator {' '.join(words)}", done.stdout + done.stderr


def processes(task: TaskProcess) -> Iterator[tuple[str, str]]:
    """The words and the environment of the task and of what it has started."""
    children = task.descendants()
    assert children
    for child in (task.process.pid, *children):
        for file in (Path(f"/proc/{child}/cmdline"), Path(f"/proc/{child}/environ")):
            try:
                yield str(file), file.read_text("utf-8", "replace")
            except (FileNotFoundError, ProcessLookupError):
                continue


def files(*folders: Path) -> Iterator[tuple[str, str]]:
    """All that the task has written on this host: its log, and what is temporary."""
    for folder in folders:
        for file in folder.rglob("*"):
            try:
                if file.is_file():
                    yield str(file), file.read_bytes().decode("utf-8", "replace")
            except FileNotFoundError:
                continue


def saved(shards: Shards) -> Iterator[tuple[str, str]]:
    """The meta tables, every column of every row."""
    schema = f"{shards.database}_meta"
    tables = shards.target.execute(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
    )
    assert tables
    for (table,) in tables:
        yield str(table), str(shards.target.execute(f"SELECT * FROM {schema}.{table}"))


def forms(secret: str) -> frozenset[str]:
    """How it may stand somewhere: as it is, in code, JSON, an address, base64, another charset."""
    return frozenset(
        {
            secret,
            repr(secret)[1:-1],
            ascii(secret)[1:-1],
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            quote(secret),
            quote(secret, safe=""),
            quote_plus(secret),
            base64.b64encode(secret.encode()).decode(),
            secret.encode().decode("latin-1"),
            # The beginning alone, which no form changes.
            secret.removesuffix(ODD),
        }
    )


def assert_hidden(places: Iterator[tuple[str, str]], secrets: Mapping[str, str]) -> None:
    for place, content in places:
        for whose, secret in secrets.items():
            found = [form for form in forms(secret) if form in content]
            assert not found, f"the secret of {whose} stands in {place}"


@pytest.mark.remedy("server.refused", "reload")
def test_no_secret_is_shown_by_a_task_that_runs_fails_and_ends(
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    hidden, shown = tmp_path / "hidden", tmp_path / "shown"
    hidden.mkdir()
    shown.mkdir()
    shards = Shards([mariadb_source, mysql_source], mariadb_target, database_name)
    shards.change(rows=60)
    accounts(shards)
    file, name = write_secret_task(shards, hidden), shards.database
    secrets = other_secrets(hidden)
    environment = {VARIABLE: SECRETS["target"]}
    with task_process(file, shown, "--log-level", "debug", env=environment) as task:
        task.until_state(name, "running")
        shards.change(rows=60)
        task.until_applied(name, shards.sources)
        runtime = Path(task.env["XDG_RUNTIME_DIR"])
        assert_hidden(told(task, name, file), secrets)
        # Spark gets the secret of its executors in a file of a folder that only its owner sees.
        theirs = {k: v for k, v in secrets.items() if k != "Spark"}
        assert_hidden(processes(task), secrets)
        assert_hidden(files(shown, runtime), theirs)
        assert_hidden(saved(shards), secrets)

        # The password is another one now: every connection to the target is refused.
        shards.target.execute(f"ALTER USER '{name}'@'127.0.0.1' IDENTIFIED BY 'xyzzy-new'")
        shards.target.execute(
            *(
                f"KILL {number}"
                for (number,) in shards.target.execute(
                    f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{name}'"
                )
            )
        )
        shards.change(rows=60)
        task.until_state(name, "paused")
        assert_hidden(told(task, name, file), secrets)
        assert_hidden(processes(task), secrets)
        assert_hidden(files(shown, runtime), theirs)
        task.env = {**task.env, VARIABLE: "xyzzy-new"}
        done = task.cli("reload", str(file))
        assert done.returncode == 0, done.stderr
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.assert_equal()
        task.cli("stop", name)
        task.process.wait(60)
    refused = [e for e in task.events() if e["event"] == "server.refused"]
    assert "Access denied" in json.dumps(refused)
    assert_hidden(files(shown), theirs)
    assert_hidden(told(task, name, file), secrets)

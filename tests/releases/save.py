"""Save what this version leaves behind when its tasks stop, for later versions to go on with.

``JAVA_HOME=$(scripts/java_home.sh) python -m tests.releases.save`` writes tests/releases/VERSION
anew, in a minute. A folder of a version that is released stays as it is.

Three tasks, each stopped in the middle of its work:

* ``locked``: schema changes are coordinated. One lock was resolved, one waits for two shards, and
  rows behind it are held; a ghost table is half way.
* ``uncoordinated``: they are not. One change was made by all shards, one by the first of them.
* ``copying``: the full copy has some chunks, and a shard that it was to copy once more.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.releases.estate import SCHEMAS, SavedEstate, estate
from tests.releases.published import page
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.task_files import start_of, task_dict

ROOT = Path(__file__).parents[2]
COLUMNS = "(id BIGINT PRIMARY KEY, name VARCHAR(40), n INT)"


def version() -> str:
    """The version of pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(settings["project"]["version"])


def task(found: SavedEstate, name: str, **more: Any) -> None:
    """Write a task file to the folder of the release, with a start where it needs one."""
    schema = SCHEMAS[name]
    values = task_dict(
        name,
        found.sources,
        found.target,
        schema=schema,
        target_schema=f"m{schema}",
        table_pattern="orders_*",
        target_table="orders",
    )
    merge = values["routes"]["merge"]
    values["routes"]["users"] = {**merge, "table-pattern": "users_*", "target-table": "users"}
    values |= {"meta-schema": "dm_meta", "shard-mode": "pessimistic", **more}
    for instance in values["mysql-instances"]:
        instance["route-rules"].append("users")
        if values["task-mode"] == "all":
            del instance["meta"]
            instance["mydumper-config-name"] = "small"
        else:
            instance["meta"] = start_of(found.sources[instance["source-id"]])
    (found.folder / f"{name}.yaml").write_text(yaml.safe_dump(values, sort_keys=False))


def create(found: SavedEstate, name: str, *targets: str, rows: int) -> None:
    """Shards ``orders_1`` and ``users_1`` at both sources, ``orders_2`` at the first one."""
    schema = SCHEMAS[name]
    for number, (source, server) in enumerate(found.sources.items()):
        server.execute(f"CREATE DATABASE {schema}")
        for shard in ("orders_1", "users_1", *(["orders_2"] if source == "a" else [])):
            first = 1_000_000 * (2 * number + (shard == "orders_2"))
            found.on(source, schema, f"CREATE TABLE {shard} {COLUMNS}")
            if rows:
                found.on(
                    source,
                    schema,
                    f"INSERT INTO {shard} SELECT {first} + seq, 'row', seq FROM seq_1_to_{rows}",
                )
    found.target.execute(f"CREATE DATABASE m{schema}")
    for target in targets:
        found.target.execute(f"CREATE TABLE m{schema}.{target} {COLUMNS}")


@contextmanager
def running(found: SavedEstate, name: str, **more: Any) -> Iterator[TaskProcess]:
    """Run the task until the end of the block; then stop it in order."""
    with tempfile.TemporaryDirectory() as folder:
        file = found.task_file(name, Path(folder), **more)
        with task_process(file, Path(folder)) as process:
            yield process
            stopped = process.cli("stop", name)
            assert stopped.returncode == 0, stopped.stderr
            assert process.process.wait(PATIENCE) == 0, process.tail()


def locked(found: SavedEstate) -> None:
    create(found, "locked", rows=20)
    task(found, "locked", **{"task-mode": "all", "mydumpers": {"small": {"rows": 10}}})
    with running(found, "locked") as process:
        process.until_state("locked", "running")
        for shard in ("a.orders_1", "a.orders_2", "b.orders_1"):
            source, table = shard.split(".")
            found.on(source, "l", f"ALTER TABLE {table} ADD c INT DEFAULT 3")
        process.until_logged("ddl.executed")
        found.on(
            "a",
            "l",
            "CREATE TABLE _users_1_gho LIKE users_1",
            "ALTER TABLE _users_1_gho ADD phone VARCHAR(20)",
            "INSERT INTO _users_1_gho (id, name, n) SELECT id, name, n FROM users_1",
            "ALTER TABLE orders_1 ADD d INT NOT NULL DEFAULT 4",
            "INSERT INTO orders_1 VALUES (100, 'held', 1, 1, 1), (101, 'held', 2, 2, 2)",
            "UPDATE orders_1 SET n = n + 1 WHERE id < 9",
            "INSERT INTO orders_2 VALUES (1000100, 'flows', 1, 1)",
            "DELETE FROM orders_2 WHERE id = 1000003",
        )
        found.on("b", "l", "INSERT INTO orders_1 VALUES (2000100, 'flows', 1, 1)")
        process.until_applied("locked", found.sources)
        for command in ("status", "show-ddl-locks"):
            told = process.cli(command, "locked", "--json")
            assert told.returncode == 0, told.stderr
            (found.folder / f"{command}.json").write_text(told.stdout)


def uncoordinated(found: SavedEstate) -> None:
    create(found, "uncoordinated", "orders", "users", rows=0)
    task(found, "uncoordinated", **{"shard-mode": ""})
    with running(found, "uncoordinated") as process:
        process.until_state("uncoordinated", "running")
        for source in found.sources:
            found.on(
                source,
                "u",
                f"INSERT INTO orders_1 VALUES ({ord(source)}, 'x', 1)",
                "ALTER TABLE orders_1 ADD c INT DEFAULT 3",
                f"INSERT INTO orders_1 VALUES ({ord(source)} + 200, 'x', 1, 2)",
            )
        found.on("a", "u", "ALTER TABLE orders_1 MODIFY n BIGINT, ADD e INT")
        found.on("a", "u", "INSERT INTO orders_1 VALUES (1, 'x', 1, 2, 5)")
        found.on("a", "u", "INSERT INTO orders_2 VALUES (2, 'x', 1)")
        process.until_applied("uncoordinated", found.sources)


def copying(found: SavedEstate) -> None:
    create(found, "copying", rows=1200)
    small = {"small": {"rows": 50, "threads": 1}}
    task(found, "copying", **{"task-mode": "all", "mydumpers": small})
    with running(found, "copying", copy={"rows-per-second": 150}) as process:
        process.until_state("copying", "running")
        process.until(lambda: chunks(found) >= 2, "the first chunks")
        found.on(
            "a",
            "c",
            "ALTER TABLE orders_1 MODIFY n VARCHAR(20)",
            "UPDATE orders_1 SET n = 'text' WHERE id % 7 = 0",
            "DELETE FROM orders_1 WHERE id % 11 = 0",
            "INSERT INTO orders_2 VALUES (1999999, 'new', 1)",
        )
        more_chunks = chunks(found) + 2
        process.until(lambda: chunks(found) >= more_chunks, "further chunks")


def chunks(found: SavedEstate) -> int:
    """How many chunks of the task ``copying`` are on the target."""
    ((count,),) = found.target.execute("SELECT COUNT(*) FROM dm_meta.copying_chunk WHERE state = 1")
    return int(count)


def main() -> int:
    """Write the folder of this version."""
    folder = ROOT / "tests" / "releases" / version()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "published.json").write_text(page(), encoding="utf-8")
    shutil.copyfile(ROOT / "config/examples/every-key.yaml", folder / "every-key.yaml")
    with estate(folder, restored=False) as found:
        locked(found)
        uncoordinated(found)
        copying(found)
        found.save()
    sys.stdout.write(f"{folder.relative_to(ROOT)} is written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Without coordination, the process killed while all shards of two targets change places."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import PATIENCE, killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

COLUMNS = "(id INT PRIMARY KEY, v INT)"
EXCHANGE = ", ".join(
    f"{{0}}.t{n} TO {{0}}.aside, {{0}}.u{n} TO {{0}}.t{n}, {{0}}.aside TO {{0}}.u{n}"
    for n in (1, 2, 3)
)
DEATHS = (
    (Failpoint.DDL_RECORDED, 1),
    (Failpoint.DDL_EXECUTED, 1),
    (Failpoint.DDL_FINISHED, 1),
    # The record of the other target, for which nothing is executed.
    (Failpoint.DDL_FINISHED, 2),
    (Failpoint.CHECKPOINT_OPEN, 3),
    (Failpoint.BATCH_APPLIED, 2),
)
"""Where the task dies, each time at an exchange, and at which time that it is reached."""


@pytest.mark.parametrize("server", ["mariadb_source", "mysql56_source"])
def test_killed_while_the_shards_of_two_targets_change_places(
    request: pytest.FixtureRequest,
    server: str,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    source: DatabaseServer = request.getfixturevalue(server)
    db, sources = database_name, {"a": source}
    shards = {kind: [f"{db}.{kind}{number}" for number in (1, 2, 3)] for kind in "tu"}
    source.execute(f"CREATE DATABASE {db}")
    target_server.execute(f"CREATE DATABASE {db}")
    for kind, names in shards.items():
        source.execute(*(f"CREATE TABLE {name} {COLUMNS}" for name in names))
        target_server.execute(f"CREATE TABLE {db}.{kind} {COLUMNS}")
    values = task_dict(db, sources, target_server, schema=db, target_schema=db)
    values["routes"]["second"] = {
        **values["routes"]["merge"],
        "table-pattern": "u*",
        "target-table": "u",
    }
    values["mysql-instances"][0]["route-rules"].append("second")
    path = write_task(tmp_path, values)

    def again(life: int) -> None:
        for place, name in enumerate(shards["t"] + shards["u"]):
            source.execute(
                f"INSERT INTO {name} VALUES ({100 * life + place}, 0)",
                f"UPDATE {name} SET v = v + 1",
            )
        source.execute(f"RENAME TABLE {EXCHANGE.format(db)}")
        for place, name in enumerate(shards["t"] + shards["u"]):
            source.execute(
                f"DELETE FROM {name} WHERE id = {100 * (life - 1) + place}",
                f"UPDATE {name} SET v = v + 10",
                f"INSERT INTO {name} VALUES ({100 * life + place + 50}, 5)",
            )

    for life, (point, time) in enumerate(DEATHS):
        with killed_at(point, path, tmp_path, time=time) as task:
            if not life:
                task.until_logged("task.running")
            again(life)
    with task_process(path, tmp_path) as task:
        task.until_applied(db, sources)
        for kind, names in shards.items():
            wanted = union_of([(source, name) for name in names], "id, v")
            target = f"{db}.{kind}"
            # Everything may have been read while the targets wait for their new names.
            task.until(
                partial(
                    lambda of, rows: rows_of(target_server, of, "id, v") == rows, target, wanted
                ),
                f"the rows of {kind}",
            )
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr
        assert task.process.wait(PATIENCE) == 0

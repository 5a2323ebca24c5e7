"""A source that is away, or not fit to be read, when a task starts: the others go on without it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.status import SourceStatus
from tests.conftest import StartServer
from tests.support.tasks.checking import purge
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.tables import rows_of

pytestmark = pytest.mark.slow

Start = Callable[[], TaskProcess]


@pytest.fixture
def source_b(start_server: StartServer) -> DatabaseServer:
    """A source that tests take away."""
    return start_server(MariaDBServer)


@pytest.fixture
def estate(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    source_b: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> ManyTargets:
    sources = {"a": mariadb_source, "b": source_b}
    return ManyTargets(
        sources, target_server, database_name, tmp_path, tables=("t1", "t2"), mode=request.param
    )


@pytest.fixture
def start(estate: ManyTargets) -> Iterator[Start]:
    """Starts the task as a new process; one that runs is killed before."""
    with ExitStack() as stack:

        def begin() -> TaskProcess:
            stack.close()
            task = stack.enter_context(task_process(estate.file, estate.folder))
            task.until_state(estate.name, "running")
            return task

        yield begin


def change(estate: ManyTargets, key: int, *sources: str) -> None:
    for number, source in enumerate(sources):
        estate.do(source, *(f"INSERT INTO {t} VALUES ({key + number}, 1)" for t in estate.tables))


def until_there(estate: ManyTargets, task: TaskProcess, *keys: int) -> None:
    """Wait until the targets have just these keys."""

    def there() -> bool:
        selects = [f"SELECT id FROM {estate.full(t)}" for t in estate.tables]
        return all({r[0] for r in estate.target.execute(s)} == set(keys) for s in selects)

    task.until(there, f"keys {keys}")


def until_source(
    estate: ManyTargets, task: TaskProcess, name: str, state: Callable[[SourceStatus], bool]
) -> None:
    def reached() -> bool:
        status = task.status(estate.name)
        if status is None or status.state != "running":
            return False
        return any(s.source == name and state(s) for s in status.sources)

    task.until(reached, f"the state of source {name}")


def logged(task: TaskProcess, event: str) -> int:
    return sum(record["event"] == event for record in task.events())


@pytest.mark.parametrize("estate", ["pessimistic"], indirect=True)
def test_a_source_that_is_away_at_a_start_keeps_no_other_waiting(
    estate: ManyTargets, source_b: DatabaseServer, start: Start
) -> None:
    task = start()
    change(estate, 1, "a", "b")
    estate.until_equal(task)
    task.process.send_signal(signal.SIGKILL)
    task.process.wait()
    change(estate, 11, "a", "b")
    source_b.stop()
    task = start()
    until_there(estate, task, 1, 2, 11)
    until_source(
        estate,
        task,
        "b",
        lambda s: s.state.startswith("reconnecting: ") and bool(s.saved_position),
    )
    [away] = [e for e in task.events() if e["event"] == "source.unavailable"]
    assert (away["source"], away["level"]) == ("b", "warning")
    assert str(source_b.port) in away["reason"]
    status = task.status(estate.name)
    assert status is not None
    assert (status.error, status.blocked) == (None, ())
    source_b.start()
    change(estate, 21, "a", "b")
    estate.until_equal(task)
    until_source(estate, task, "b", lambda s: s.state == "reading")
    assert logged(task, "source.available") == 1
    # It goes away while it is read, and a run begins without it.
    source_b.stop()
    until_source(estate, task, "b", lambda s: s.state.startswith("reconnecting: "))
    t2 = estate.shown("t2")
    assert task.cli("pause", estate.name, "--target", t2).returncode == 0
    estate.until_blocked(task, t2)
    estate.do("a", "INSERT INTO t1 VALUES (31, 1)")
    task.until(lambda: rows_of(estate.target, estate.full("t1")).total() == 7, "the row of a")
    assert task.cli("resume", estate.name, "--target", t2).returncode == 0
    source_b.start()
    change(estate, 41, "a", "b")
    estate.until_equal(task)


@pytest.mark.remedy("source.check-failed", "resume")
@pytest.mark.parametrize("estate", [""], indirect=True, ids=["uncoordinated"])
def test_a_source_that_can_not_be_read_from_at_a_start_is_blocked_and_no_other(
    estate: ManyTargets, source_b: DatabaseServer, start: Start
) -> None:
    task = start()
    change(estate, 1, "a", "b")
    estate.until_equal(task)
    task.process.send_signal(signal.SIGKILL)
    task.process.wait()
    change(estate, 11, "a")
    source_b.execute("SET GLOBAL binlog_format=STATEMENT")
    source_b.execute("FLUSH BINARY LOGS")
    purge(source_b)
    task = start()
    until_there(estate, task, 1, 2, 11)
    part = estate.until_blocked(task, "b")["b"]
    assert part.error is not None
    assert (part.kind, part.error.event) == ("source", "source.check-failed")
    assert any("SET GLOBAL binlog_format" in way for way in part.remedies)
    resume = ["resume", estate.name, "--source", "b"]
    assert any(f"`replicator {' '.join(resume)}`" in way for way in part.remedies)
    assert task.cli(*resume).returncode == 0
    task.until(lambda: logged(task, "source.check-failed") == 2, "the same fault")
    estate.until_blocked(task, "b")
    source_b.execute("SET GLOBAL binlog_format=ROW")
    assert task.cli(*resume).returncode == 0
    task.until_logged("source.purged")
    part = estate.until_blocked(task, "b")["b"]
    assert part.error is not None
    assert part.error.event == "source.purged"
    change(estate, 21, "a")
    until_there(estate, task, 1, 2, 11, 21)


@pytest.mark.remedy("source.check-failed", "reload")
@pytest.mark.parametrize("estate", [""], indirect=True, ids=["uncoordinated"])
def test_a_check_that_the_task_file_fails_is_made_again_with_the_changed_file(
    estate: ManyTargets, start: Start
) -> None:
    plain = estate.file.read_text()
    values = yaml.safe_load(plain)
    rule = {"schema": estate.name, "table": "t1", "insert-value-expr": "a > 5000"}
    values["expression-filter"] = {"large": rule}
    values["mysql-instances"][1]["expression-filters"] = ["large"]
    estate.file.write_text(yaml.safe_dump(values))
    task = start()
    change(estate, 1, "a", "b")
    estate.until_equal(task)
    task.process.send_signal(signal.SIGKILL)
    task.process.wait()
    for source in ("a", "b"):
        estate.do(source, "ALTER TABLE t1 MODIFY a VARCHAR(9)")
    change(estate, 11, "a", "b")
    task = start()
    part = estate.until_blocked(task, "b")["b"]
    assert part.error is not None
    assert part.error.event == "source.check-failed"
    way = part.remedies[-1]
    assert f"`replicator reload {estate.file}`" in way
    estate.file.write_text(plain)
    done = task.cli("reload", str(estate.file), "--on-changed-rules", "keep")
    assert done.returncode == 0, done.stderr
    change(estate, 21, "a", "b")
    estate.until_equal(task)

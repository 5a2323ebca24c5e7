"""A network that breaks connections of a running task; equal in the end, without a hand.

The faults are those of `tests.support.servers.faulty_proxy`, on each kind of connection: the
stream of a source's binlog and the look-ups there; what the driver does on the target, and what
executors write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import TARGETS, started
from tests.support.servers.faulty_proxy import Fault, FaultyLine, Trap, Way
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.processes import PATIENCE
from tests.support.tasks.shards import Shards

pytestmark = pytest.mark.slow

NAME = "links"


class Broken(LongTask):
    """A task whose connections to the first source and to the target pass through lines."""

    def __init__(self, task: LongTask, lines: dict[str, FaultyLine]) -> None:
        self.__dict__ |= task.__dict__
        self.lines = lines
        self.values["sources"][0]["from"]["port"] = lines["source"].port
        self.values["target-database"]["port"] = lines["target"].port


@pytest.fixture(scope="module", params=["mariadb", "tidb"])
def life(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broken]:
    with ExitStack() as held:
        sources = [
            held.enter_context(started(MariaDBServer({"binlog_row_metadata": kind})))
            for kind in ("NO_LOG", "FULL")
        ]
        target = held.enter_context(started(TARGETS[request.param]()))
        lines = {
            "source": held.enter_context(FaultyLine(sources[0].port)),
            "target": held.enter_context(FaultyLine(target.port)),
        }
        task = LongTask(Shards(sources, target, NAME), tmp_path_factory.mktemp("lines"))
        broken = Broken(task, lines)
        held.callback(broken.end)
        yield broken


@pytest.fixture
def running(life: Broken) -> Broken:
    """The task, running, with nothing left to do."""
    life.task.until_state(NAME, "running")
    life.assert_equal()
    return life


def spring(running: Broken, line: str, trap: Trap) -> None:
    running.lines[line].set(trap)
    assert trap.sprung.wait(PATIENCE), f"{trap} was not sprung"


@pytest.mark.parametrize("line", ["source", "target"])
@pytest.mark.parametrize("fault", Fault)
def test_all_connections_break_under_load(running: Broken, fault: Fault, line: str) -> None:
    with running.shards.changing():
        time.sleep(1)
        assert running.lines[line].break_all(fault)
        time.sleep(1)
    running.assert_equal()


@pytest.mark.parametrize("fault", [Fault.END, Fault.RESET, Fault.VANISH, Fault.STALL_THIS_WAY])
def test_answers_to_commits_are_lost(running: Broken, fault: Fault) -> None:
    with running.shards.changing():
        for _ in range(4):
            spring(running, "target", Trap(Way.TO_SERVER, fault, b"COMMIT", answer=True))
    running.assert_equal()


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.STALL_THIS_WAY])
def test_commits_are_lost(running: Broken, fault: Fault) -> None:
    with running.shards.changing():
        for _ in range(3):
            spring(running, "target", Trap(Way.TO_SERVER, fault, b"COMMIT"))
    running.assert_equal()


@pytest.mark.parametrize("fault", [Fault.END, Fault.RESET, Fault.STALL])
@pytest.mark.parametrize("pattern", [b"row\t", b"INTO `links`.`t`", b"DELETE FROM", b"lease"])
def test_statements_and_loads_break_in_the_middle(
    running: Broken, pattern: bytes, fault: Fault, request: pytest.FixtureRequest
) -> None:
    trap = Trap(Way.TO_SERVER, fault, pattern, forwarded=30)
    if pattern == b"row\t" and request.node.callspec.params["life"] == "tidb":
        # There, rows are written by statements.
        trap = Trap(Way.TO_SERVER, fault, b"'row'", forwarded=30)
    with running.shards.changing(rows=600):
        spring(running, "target", trap)
    running.assert_equal()


@pytest.mark.parametrize("fault", [Fault.END, Fault.RESET, Fault.STALL, Fault.STALL_THIS_WAY])
def test_a_binlog_breaks_in_the_middle_of_an_event(running: Broken, fault: Fault) -> None:
    with running.shards.changing(rows=600):
        for forwarded in (3, 27):
            spring(running, "source", Trap(Way.TO_CLIENT, fault, b"row", forwarded=forwarded))
    running.assert_equal()


@pytest.mark.parametrize("line", ["source", "target"])
@pytest.mark.parametrize("fault", [Fault.RESET, Fault.STALL])
def test_handshakes_break(running: Broken, fault: Fault, line: str) -> None:
    traps = [
        running.lines[line].set(
            Trap(Way.TO_CLIENT, fault, b"mysql_native_password", forwarded=forwarded)
        )
        for forwarded in (0, 20, 40)
    ]
    with running.shards.changing():
        running.lines[line].break_all(Fault.RESET)
        for trap in traps:
            assert trap.sprung.wait(PATIENCE)
    running.assert_equal()


def test_a_stream_is_opened_again_while_its_source_holds_the_old_one(running: Broken) -> None:
    source = running.shards.servers[0]
    for _ in range(3):
        with running.shards.changing():
            before = running.logged("source.connected")
            # Only the task takes it for lost.
            running.lines["source"].break_all(Fault.STALL_THIS_WAY, Way.TO_CLIENT)
            running.task.until_logged("source.connected", before + 1)
        running.assert_equal()
    threads = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"
    running.task.until(lambda: source.execute(threads) == ((1,),), "one thread for the stream")


@pytest.mark.parametrize("line", ["source", "target"])
def test_a_slow_line(running: Broken, line: str) -> None:
    lost = running.logged("batch.retry") + running.logged("source.lost")
    running.lines[line].bytes_per_second = 200_000.0
    try:
        running.shards.change(rows=4000)
        running.assert_equal()
    finally:
        running.lines[line].bytes_per_second = None
    assert running.logged("batch.retry") + running.logged("source.lost") == lost


def test_a_schema_change_whose_answer_is_lost(running: Broken) -> None:
    for fault in (Fault.STALL, Fault.RESET):
        running.lines["target"].set(Trap(Way.TO_SERVER, fault, b"ALTER TABLE", answer=True))
        with running.shards.changing():
            running.shards.alter()
        running.assert_equal()

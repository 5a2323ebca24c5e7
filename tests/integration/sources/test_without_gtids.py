"""Transactions that have no GTID, or one that comes out of order, of a source followed by GTID."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.binlog.connection import dump_connection
from replicator.binlog.parser import file_state
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.tasks.failover import FailingOver
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import caught_up, running
from tests.support.tasks.task_files import start_of

TO_ANONYMOUS = ("ON_PERMISSIVE", "OFF_PERMISSIVE")
BACK = ("ON_PERMISSIVE", "ON")


def set_mode(server: DatabaseServer, *modes: str) -> None:
    server.execute(*(f"SET GLOBAL gtid_mode = {mode}" for mode in modes))


@pytest.fixture
def followed(merging_from: Callable[..., Merging]) -> Callable[[DatabaseServer], Merging]:
    """Makes a task that follows a server by GTID, and has a target with and one without a key."""

    def make(server: DatabaseServer) -> Merging:
        merging = merging_from(server)
        merging.create("t", "(id INT PRIMARY KEY)")
        merging.create("bag", "(n INT)")
        merging.each_source["enable-gtid"] = True
        assert merging.task
        return merging

    return make


def write(merging: Merging, first: int, times: int = 3) -> None:
    for number in range(first, first + times):
        merging.do(f"INSERT INTO t_1 VALUES ({number})", f"INSERT INTO bag_1 VALUES ({number % 2})")


async def read_all(merging: Merging) -> None:
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.remedy("source.gtid-mode", "resume")
@pytest.mark.parametrize(
    ("rotated", "more"),
    [
        (True, True),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in ((True, False), (False, True))),
    ],
)
async def test_what_a_mysql_wrote_without_gtids_while_the_task_was_stopped(
    rotated: bool,
    more: bool,
    start_server: StartServer,
    followed: Callable[[DatabaseServer], Merging],
) -> None:
    source = start_server(MySQLServer)
    merging = followed(source)
    write(merging, 0)
    await read_all(merging)
    set_mode(source, *TO_ANONYMOUS)
    write(merging, 10)
    set_mode(source, BACK[0])
    if rotated:
        source.execute("FLUSH BINARY LOGS")
    set_mode(source, BACK[1])
    if more:
        write(merging, 20)
    fault = await merging.fault()
    assert fault.event == "source.gtid-mode"
    assert "SET GLOBAL gtid_mode = ON_PERMISSIVE" in fault.remedies[0]
    source.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    await read_all(merging)
    set_mode(source, "ON")
    write(merging, 30)
    await read_all(merging)


@pytest.mark.slow
@pytest.mark.parametrize("rotated", [True, False])
async def test_a_mysql_that_writes_without_gtids_while_the_task_runs(
    rotated: bool, start_server: StartServer, followed: Callable[[DatabaseServer], Merging]
) -> None:
    source = start_server(MySQLServer)
    merging = followed(source)
    write(merging, 0)
    await read_all(merging)
    write(merging, 5)
    async with merging.running() as generation:
        set_mode(source, *TO_ANONYMOUS)
        write(merging, 10)
        await merging.check(generation)
        if rotated:
            source.execute("FLUSH BINARY LOGS")
        set_mode(source, *BACK)
        write(merging, 20)
        await merging.check(generation)
    write(merging, 30)
    await read_all(merging)


@pytest.mark.slow
@pytest.mark.parametrize("rotated", [True, False])
async def test_a_mariadb_that_goes_back_in_its_numbers_or_changes_the_domain(
    rotated: bool, start_server: StartServer, followed: Callable[[DatabaseServer], Merging]
) -> None:
    source = start_server(MariaDBServer)
    merging = followed(source)
    write(merging, 0, 10)
    await read_all(merging)
    merging.do("SET gtid_seq_no = 3", "INSERT INTO t_1 VALUES (100)")
    merging.do("SET gtid_domain_id = 7", "INSERT INTO t_1 VALUES (101)")
    merging.do("SET gtid_domain_id = 7", "SET gtid_seq_no = 1", "INSERT INTO bag_1 VALUES (1)")
    if rotated:
        source.execute("FLUSH BINARY LOGS")
    write(merging, 20)
    await read_all(merging)
    if rotated:
        source.execute("FLUSH BINARY LOGS")
    merging.do("SET gtid_seq_no = 2", "INSERT INTO t_1 VALUES (102)")
    await read_all(merging)


@pytest.mark.slow
async def test_what_a_mysql_5_6_wrote_while_it_ran_without_gtids(
    start_server: StartServer, followed: Callable[[DatabaseServer], Merging]
) -> None:
    source = start_server(MySQL56Server, GTID_OPTIONS)
    merging = followed(source)
    write(merging, 0)
    await read_all(merging)
    source.reconfigure({**GTID_OPTIONS, "gtid_mode": "OFF"})
    source.restart()
    write(merging, 10)
    source.reconfigure(GTID_OPTIONS)
    source.restart()
    write(merging, 20)
    await read_all(merging)
    source.reconfigure({**GTID_OPTIONS, "gtid_mode": "OFF"})
    source.restart()
    write(merging, 30)
    fault = await merging.fault()
    assert fault.event == "source.gtid-mode"
    assert "restart the server with `gtid_mode = ON`" in fault.remedies[0]
    source.reconfigure(GTID_OPTIONS)
    source.restart()
    await read_all(merging)


@pytest.mark.slow
@pytest.mark.remedy("source.without-gtids", "run")
async def test_a_start_by_gtid_before_transactions_without_any(
    start_server: StartServer, followed: Callable[[DatabaseServer], Merging]
) -> None:
    source = start_server(MySQLServer)
    merging = followed(source)
    [(executed,)] = source.execute("SELECT @@global.gtid_executed")
    start = start_of(source)
    merging.instance = {"meta": {"binlog-gtid": executed.replace("\n", "")}}
    merging.changed(mode="incremental")
    set_mode(source, *TO_ANONYMOUS)
    write(merging, 0)
    set_mode(source, BACK[0])
    source.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    write(merging, 10)
    set_mode(source, BACK[1])
    fault = await merging.fault()
    assert fault.event == "source.without-gtids"
    assert "binlog-name and binlog-pos" in fault.remedies[0]
    merging.instance = {"meta": start}
    merging.changed(mode="incremental")
    set_mode(source, "ON_PERMISSIVE")
    await read_all(merging)
    set_mode(source, "ON")


@pytest.mark.slow
async def test_a_start_by_a_set_that_has_a_gap(
    start_server: StartServer, followed: Callable[[DatabaseServer], Merging]
) -> None:
    source = start_server(MySQLServer)
    merging = followed(source)
    write(merging, 0, 2)
    [(executed,)] = source.execute("SELECT @@global.gtid_executed")
    uuid, numbers = executed.split(":")
    last = int(numbers.split("-")[-1])
    start = f"{uuid}:1-{last - 2}:{last}"
    merging.instance = {"meta": {"binlog-gtid": start}}
    merging.changed(mode="incremental")
    fault = await merging.fault()
    assert fault.event == "source.no-start"
    assert f"{uuid}:{last}" in fault.message


@pytest.mark.remedy("source.without-gtids", "resume", "copy anew")
async def test_a_replica_with_transactions_without_gtids_takes_over(
    failing_over: FailingOver,
) -> None:
    it = failing_over(MySQLServer)
    pair = it.pair
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    pair.until_replicated()
    new = pair.promote()
    it.line.switch(new.port)
    set_mode(new, *TO_ANONYMOUS)
    number, it.number = it.number, 1000
    it.write(new)
    set_mode(new, BACK[0])
    new.execute("FLUSH BINARY LOGS")
    set_mode(new, BACK[1])
    it.write(new)
    assert (await it.until_fault()).event == "source.without-gtids"
    it.line.switch(pair.primary.port)
    it.number = number
    it.write(pair.primary)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.primary})
        it.assert_equal(pair.primary)
    await it.copy_anew(pair.primary)


@pytest.mark.slow
async def test_a_failover_after_transactions_without_gtids(failing_over: FailingOver) -> None:
    it = failing_over(MySQLServer)
    pair = it.pair
    it.write(pair.primary)
    pair.until_replicated()
    pair.promote()
    async with running(it.task, it.spark) as generation:
        set_mode(pair.primary, *TO_ANONYMOUS)
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    it.line.switch(pair.replica.port)
    assert (await it.until_fault()).event == "source.failover-position-unknown"
    it.line.switch(pair.primary.port)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.primary})
        it.assert_equal(pair.primary)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer, MySQL56Server])
async def test_a_position_that_only_gtids_can_express(
    kind: type[DatabaseServer],
    start_server: StartServer,
    followed: Callable[[DatabaseServer], Merging],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond 4 GiB of a file: here every position is as such a one."""
    merging = followed(start_server(kind, GTID_OPTIONS if kind is MySQL56Server else None))
    monkeypatch.setattr(file_state, "MAX_OFFSET", 5)
    async with merging.running() as generation:
        write(merging, 0)
        await merging.check(generation)
    write(merging, 10)
    monkeypatch.setattr(dump_connection, "FARTHEST", 5)
    await read_all(merging)
    merging.source.execute("FLUSH BINARY LOGS")
    write(merging, 20)
    await read_all(merging)

"""`check` on a Galera node reads the settings of the cluster before it tries to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import anyio
import pytest

from actors.errors.faults import FatalError
from actors.task.resources.lease_keeper import LeaseKeeper
from replicator.checks.checked_task import TargetToCheck
from replicator.checks.result import CheckedPart
from replicator.checks.source.source_cluster import check_source_cluster, source_cluster
from replicator.checks.target.target_checks import check_target
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from tests.support.servers.galera import GaleraCluster, GaleraNode
from tests.support.tasks.checking import statements_of


@contextmanager
def setting(node: GaleraNode, name: str, value: str, usual: str) -> Iterator[None]:
    node.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        node.execute(f"SET GLOBAL {name} = {usual}")


def target_of(node: GaleraNode, meta: str, *session: tuple[str, str]) -> TargetToCheck:
    address = DatabaseAddress(node.host, node.port, node.user, node.password, session=session)
    return TargetToCheck(address, meta, "task")


@pytest.mark.parametrize(
    ("session", "named"),
    [
        ((), "wsrep_OSU_method is RSU"),
        ((("wsrep_on", "0"),), "wsrep_on is OFF"),
        ((("sql_log_bin", "0"),), "sql_log_bin is OFF"),
    ],
    ids=["rsu", "wsrep-off", "log-off"],
)
async def test_a_node_that_would_keep_changes_to_itself_is_not_written(
    galera: GaleraCluster, database_name: str, session: tuple[tuple[str, str], ...], named: str
) -> None:
    node = galera.nodes[0]
    node.execute(f"CREATE DATABASE {database_name}")
    galera.until_equal()
    before = node.applied
    with setting(node, "wsrep_OSU_method", "TOI" if session else "RSU", "TOI"):
        results = await check_target(target_of(node, database_name, *session))
    failed = [result for result in results if result.state == "failed"]
    assert [result.name for result in failed] == ["target_cluster"]
    assert named in failed[0].finding
    assert failed[0].remedies
    galera.until_synced()
    assert node.applied == before


@pytest.mark.cures("transaction_size")
@pytest.mark.cures("target_cluster")
async def test_the_remedy_makes_the_cluster_execute_changes_everywhere(
    galera: GaleraCluster, database_name: str
) -> None:
    node = galera.nodes[0]
    with setting(node, "wsrep_OSU_method", "RSU", "TOI"):
        results = await check_target(target_of(node, database_name))
        node.execute(
            *(text for result in results if result.remedies for text in statements_of(result))
        )
        results = await check_target(target_of(node, database_name))
    assert not [result for result in results if result.state != "passed"]


async def test_limits_of_a_write_set_are_named(galera: GaleraCluster, database_name: str) -> None:
    node = galera.nodes[0]
    usual = await check_target(target_of(node, database_name))
    assert not [result for result in usual if result.state != "passed"]
    with (
        setting(node, "wsrep_max_ws_rows", "1000", "0"),
        setting(node, "wsrep_max_ws_size", "65536", "2147483647"),
    ):
        results = await check_target(target_of(node, database_name))
        warned = [result for result in results if result.state == "warning"]
        node.execute(*(text for result in warned for text in statements_of(result)))
        cured = await check_target(target_of(node, database_name))
        assert not [result for result in cured if result.state != "passed"]
    assert [result.name for result in warned] == ["transaction_size"] * 2
    assert "wsrep_max_ws_rows = 0" in warned[0].remedies[0]
    assert "wsrep_max_ws_size = 2147483647" in warned[1].remedies[0]


async def test_nothing_is_tried_if_loads_are_split(
    galera: GaleraCluster, database_name: str
) -> None:
    node = galera.nodes[0]
    galera.until_synced()
    before = node.applied
    with setting(node, "wsrep_load_data_splitting", "ON", "OFF"):
        results = await check_target(target_of(node, database_name))
    assert [r.name for r in results if r.state == "failed"] == ["transaction_size"]
    galera.until_synced()
    assert node.applied == before


async def test_a_run_makes_no_meta_tables_on_one_node_whatever_it_ignores(
    galera: GaleraCluster, database_name: str
) -> None:
    node = galera.nodes[0]
    address = DatabaseAddress(node.host, node.port, node.user, node.password)
    lease = Lease(database_name, "task", this_process())
    keeper = LeaseKeeper(address, database_name, "task", lease)
    with setting(node, "wsrep_OSU_method", "RSU", "TOI"), pytest.raises(FatalError) as refused:
        await keeper.take(anyio.Event())
    await keeper.release()
    assert "wsrep_OSU_method = 'TOI'" in refused.value.remedies[0]
    assert not node.execute(f"SHOW DATABASES LIKE '{database_name}'")


def test_a_source_that_lacks_the_rows_of_other_nodes_is_refused() -> None:
    place = CheckedPart("a")
    node = {"wsrep_provider": "/usr/lib/galera.so", "log_slave_updates": "OFF", "server_id": "3"}
    assert not source_cluster(place, {"wsrep_provider": "none"})
    assert source_cluster(place, node)[0].state == "failed"
    node["log_slave_updates"] = "ON"
    assert source_cluster(place, node)[0].state == "warning"
    assert source_cluster(place, node | {"wsrep_gtid_mode": "ON"})[0].state == "passed"


async def test_a_node_as_source_is_told_about_gtids(galera: GaleraCluster) -> None:
    node = galera.nodes[0]
    address = DatabaseAddress(node.host, node.port, node.user, node.password)
    with closing(Connection(address)) as connection:
        (found,) = await check_source_cluster(CheckedPart("a"), connection)
    assert found.state == "warning"
    assert "wsrep_gtid_mode=ON" in found.remedies[0]

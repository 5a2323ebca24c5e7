"""`check` on a Galera node reads the settings of the cluster before it tries to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from replicator.checks.checked_task import TargetToCheck
from replicator.checks.target.target_checks import check_target
from replicator.mysql.connection.address import DatabaseAddress
from tests.support.servers.galera import GaleraCluster, GaleraNode


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
    assert [result.name for result in warned] == ["transaction_size"] * 2
    assert "wsrep_max_ws_rows = 0" in warned[0].remedies[0]
    assert "wsrep_max_ws_size = 2147483647" in warned[1].remedies[0]

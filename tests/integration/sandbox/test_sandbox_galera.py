"""Private Galera clusters: their nodes have one another's rows, listen here only, and end."""

from __future__ import annotations

import pytest

from tests.support.servers.galera import GaleraCluster
from tests.support.servers.listening import listening, process_of


def test_each_node_has_the_rows_of_the_others(galera: GaleraCluster, database_name: str) -> None:
    for number, node in enumerate(galera.nodes):
        if not number:
            node.execute(
                f"CREATE DATABASE {database_name}",
                f"CREATE TABLE {database_name}.t (node INT PRIMARY KEY)",
            )
        galera.until_equal()
        node.execute(f"INSERT INTO {database_name}.t VALUES ({number})")
    galera.until_equal()
    for node in galera.nodes:
        assert node.execute(f"SELECT node FROM {database_name}.t ORDER BY node") == (
            (0,),
            (1,),
            (2,),
        )


@pytest.mark.slow
def test_a_killed_node_gets_what_it_has_missed(galera: GaleraCluster, database_name: str) -> None:
    first, last = galera.nodes[0], galera.nodes[-1]
    last.kill()
    galera.until_synced(galera.nodes[:-1])
    first.execute(f"CREATE DATABASE {database_name}")
    last.start()
    galera.until_synced()
    assert last.execute(f"SHOW DATABASES LIKE '{database_name}'")


def test_nodes_listen_on_this_machine_only(galera: GaleraCluster) -> None:
    for node in galera.nodes:
        found = listening(process_of(node))
        # One port for clients, one for the other nodes.
        assert ("127.0.0.1", node.port) in found
        assert len(found) >= 2
        assert {host for host, _ in found} == {"127.0.0.1"}

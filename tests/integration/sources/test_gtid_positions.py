"""Finding the places of one server's binlog in that of its replica."""

from __future__ import annotations

from functools import partial

import pytest

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.errors import OtherOrderError
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.stream.gtid_positions import GtidPlaces, GtidSearch, find_places
from replicator.mysql.connection.address import DatabaseAddress
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.replication import ReplicatedPair


def places(server: DatabaseServer, sought: GtidSearch, end: BinlogPosition) -> GtidPlaces:
    address = DatabaseAddress(server.host, server.port, server.user, server.password)
    connect = partial(
        BinlogConnection, BinlogSource(address, server_id=77001, heartbeat=0.2), bare=True
    )
    return find_places(connect, end, sought)


@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
def test_places_are_found_in_the_binlog_of_the_replica(
    kind: type[BinlogServer], start_server: StartServer
) -> None:
    pair = ReplicatedPair(start_server, kind)
    # Its files and offsets are other ones.
    pair.replica.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    pair.primary.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    sets: list[str] = []
    keys: list[int] = []
    for number in range(6):
        pair.until_replicated()
        sets.append(pair.executed(pair.primary))
        keys.append(end_of(pair.replica).key)
        pair.primary.execute(f"INSERT INTO d.t VALUES ({number})")
        if number == 3:
            pair.until_replicated()
            pair.replica.execute("FLUSH BINARY LOGS")
    pair.until_replicated()
    sets.append(pair.executed(pair.primary))
    end = end_of(pair.replica)
    for saved, later in ((0, 3), (1, 6), (5, 6), (6, 6)):
        sought = GtidSearch(sets[saved], frozenset({sets[later]}))
        found = places(pair.replica, sought, end)
        assert found.position.gtid == sets[saved]
        assert found.position.anchor is not None
        if saved < 4:
            assert found.position.binlog.key == keys[saved]
        assert found.boundaries[sets[later]] == (end.key if later == 6 else keys[later])
    pair.promote()
    pair.replica.execute("INSERT INTO d.t VALUES (100)")
    found = places(pair.replica, GtidSearch(sets[6]), end_of(pair.replica))
    assert found.position.binlog == end


@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
def test_a_server_with_transactions_of_its_own_in_between_is_refused(
    kind: type[BinlogServer], start_server: StartServer
) -> None:
    pair = ReplicatedPair(start_server, kind)
    pair.primary.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair.until_replicated()
    saved = pair.executed(pair.primary)
    pair.replica.execute("INSERT INTO d.t VALUES (1000)")
    pair.primary.execute("INSERT INTO d.t VALUES (1)")
    later = pair.executed(pair.primary)
    pair.until_replicated()
    with pytest.raises(OtherOrderError):
        places(pair.replica, GtidSearch(saved, frozenset({later})), end_of(pair.replica))
    with pytest.raises(OtherOrderError):
        places(pair.replica, GtidSearch(later), end_of(pair.replica))


def test_what_a_replica_wrote_before_it_was_one_does_no_harm(start_server: StartServer) -> None:
    """With MariaDB, whose numbers begin anew then."""
    own = ("CREATE DATABASE other", "CREATE TABLE other.t (id INT PRIMARY KEY)")
    pair = ReplicatedPair(start_server, MariaDBServer, own=own)
    pair.primary.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    saved = pair.executed(pair.primary)
    pair.primary.execute("INSERT INTO d.t VALUES (1)")
    later = pair.executed(pair.primary)
    pair.until_replicated()
    sought = GtidSearch(saved, frozenset({later}), left=(saved,))
    assert places(pair.replica, sought, end_of(pair.replica)).position.gtid == saved


def test_a_former_primary_that_wrote_on_is_noticed(start_server: StartServer) -> None:
    """Also where the file of the place does not show it (MariaDB's replicas read on behind it)."""
    pair = ReplicatedPair(start_server, MariaDBServer)
    former = pair.primary
    former.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair.until_replicated()
    left = pair.executed(former)
    new = pair.promote()
    former.execute("INSERT INTO d.t VALUES (1000)", "FLUSH BINARY LOGS")
    new.execute(*(f"INSERT INTO d.t VALUES ({number})" for number in range(5)))
    former.execute("FLUSH BINARY LOGS")
    former.execute(f"SET GLOBAL gtid_slave_pos = '{left}'")
    pair.follow(former, new)
    pair.primary, pair.replica = new, former
    pair.until_replicated()
    former.execute("FLUSH BINARY LOGS")
    saved = pair.executed(new)
    with pytest.raises(OtherOrderError, match="that took over from it"):
        places(former, GtidSearch(saved, left=(left,)), end_of(former))

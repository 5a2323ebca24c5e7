"""Private Galera clusters, of the machine's own `mariadbd` and Debian's `galera-4` and `rsync`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pymysql

from replicator.sandbox.keeper import ServerUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import reserved_port, tail

PROVIDERS = (
    Path("/usr/lib/galera/libgalera_smm.so"),
    Path("/usr/lib64/galera-4/libgalera_smm.so"),
)
PATIENCE = 60.0
LOOK_SECONDS = 0.05
NODES = 3

OPTIONS: Mapping[str, str | None] = {
    "wsrep_on": "ON",
    "wsrep_cluster_name": "private",
    "wsrep_node_address": "127.0.0.1",
    "wsrep_sst_method": "rsync",
    "innodb_autoinc_lock_mode": "2",
    "log_slave_updates": None,
}


class GaleraNode(MariaDBServer):
    """A node of a `GaleraCluster`; `start` joins the nodes that run.

    Attributes:
        first: the next start makes a new cluster.
    """

    def __init__(
        self, ports: Sequence[int], others: Sequence[int], options: Mapping[str, str | None]
    ) -> None:
        """`ports`: for the group, for rows missed, for a full copy; `others`: the other groups'."""
        self._ports, self._others = tuple(ports), tuple(others)
        self.first = False
        super().__init__(options)

    def _program(self) -> Path:
        program = super()._program()
        _provider()
        if shutil.which("rsync") is None:
            raise ServerUnavailableError("There is no rsync on this machine: install it.")
        return program

    def _kind_options(self) -> Mapping[str, str | None]:
        group, missed, copied = self._ports
        provider = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{group}",
            "ist.recv_addr": f"127.0.0.1:{missed}",
            "gcache.size": "16M",
            # A node that was killed is left out after 2 s instead of 15.
            "evs.keepalive_period": "PT0.5S",
            "evs.suspect_timeout": "PT2S",
            "evs.inactive_timeout": "PT4S",
        }
        others = ",".join(f"127.0.0.1:{port}" for port in self._others)
        return {
            **super()._kind_options(),
            **OPTIONS,
            "wsrep_provider": str(_provider()),
            "wsrep_provider_options": ";".join(f"{k}={v}" for k, v in provider.items()),
            "wsrep_cluster_address": f"gcomm://{'' if self.first else others}",
            "wsrep_node_name": f"node{group}",
            "wsrep_sst_receive_address": f"127.0.0.1:{copied}",
        }

    @property
    def log(self) -> Path:
        """What the server has written about itself."""
        return self.folder / "server.log"

    def status(self, name: str) -> str:
        """A status variable, such as ``wsrep_cluster_size``."""
        return str(self.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])

    @property
    def applied(self) -> int:
        """The number of the last transaction of the cluster that the node has."""
        return int(self.status("wsrep_last_committed"))

    def synced(self, size: int) -> bool:
        """Whether the node is one of `size` that have the same rows."""
        try:
            return (
                self.status("wsrep_ready") == "ON"
                and self.status("wsrep_local_state_comment") == "Synced"
                and self.status("wsrep_cluster_size") == str(size)
            )
        except pymysql.err.OperationalError:
            return False


class GaleraCluster:
    """Nodes on free loopback ports of this machine: a context manager that ends them."""

    def __init__(
        self,
        options: Mapping[str, str | None] | None = None,
        own: Sequence[Mapping[str, str | None]] = (),
        nodes: int = NODES,
    ) -> None:
        """`options` of each server (`DatabaseServer`); `own`: more of them, one mapping a node."""
        self._resources = ExitStack()
        sockets = [
            [self._resources.enter_context(reserved_port("127.0.0.1")) for _ in range(3)]
            for _ in range(nodes)
        ]
        ports = [[of.getsockname()[1] for of in three] for three in sockets]
        groups = [port for port, *_ in ports]
        self.nodes = [
            GaleraNode(
                three,
                [port for port in groups if port != three[0]],
                {**(options or {}), **(own[number] if own else {})},
            )
            for number, three in enumerate(ports)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start all nodes, and wait until they have one another's rows.

        Raises ServerUnavailableError if a program is missing.
        """
        try:
            for number, node in enumerate(self.nodes):
                node.first = number == 0
                self._resources.callback(node.close)
                node.start()
                self.until_synced(self.nodes[: number + 1])
        except BaseException:
            self.close()
            raise
        self.nodes[0].first = False

    def close(self) -> None:
        """End all nodes, and give their ports back. Idempotent."""
        self._resources.close()

    def until_synced(self, nodes: Sequence[GaleraNode] | None = None) -> None:
        """Wait until `nodes`, without an argument all, are the cluster."""
        expected = self.nodes if nodes is None else nodes
        deadline = time.monotonic() + PATIENCE
        while not all(node.synced(len(expected)) for node in expected):
            if time.monotonic() > deadline:
                log = tail(expected[-1].log)
                raise AssertionError(f"{len(expected)} nodes are no cluster. Its log ends:\n{log}")
            time.sleep(LOOK_SECONDS)

    def until_equal(self, nodes: Sequence[GaleraNode] | None = None) -> None:
        """Wait until `nodes`, without an argument all, have applied what any of them has."""
        expected = self.nodes if nodes is None else nodes
        deadline = time.monotonic() + PATIENCE
        wanted = max(node.applied for node in expected)
        while any(node.applied < wanted for node in expected):
            if time.monotonic() > deadline:
                raise AssertionError(f"a node has not applied {wanted} after {PATIENCE:.0f} s")
            time.sleep(LOOK_SECONDS)


def _provider() -> Path:
    for path in PROVIDERS:
        if path.exists():
            return path
    raise ServerUnavailableError("There is no Galera on this machine: install galera-4 and rsync.")

"""Two servers, one of them a replica of the other by the server's own replication."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.conftest import StartServer

PATIENCE = 60.0
LOOK_SECONDS = 0.02


class ReplicatedPair:
    """``primary`` and its ``replica``; `promote` makes the replica a server of its own."""

    def __init__(
        self,
        start_server: StartServer,
        kind: type[BinlogServer],
        options: Mapping[str, str | None] | None = None,
        replica_options: Mapping[str, str | None] | None = None,
        own: Sequence[str] = (),
    ) -> None:
        """``own``: statements that the replica has executed before it becomes one."""
        more: dict[str, str | None] = {} if is_mysql(kind) else {"log_slave_updates": None}
        self.mysql = is_mysql(kind)
        self.primary: DatabaseServer = start_server(kind, {**more, **(options or {})})
        self.replica: DatabaseServer = start_server(
            kind, {**more, **(options or {}), **(replica_options or {})}
        )
        if own:
            self.replica.execute(*own)
        self.follow(self.replica, self.primary)

    def follow(self, replica: DatabaseServer, primary: DatabaseServer) -> None:
        """Make a server the replica of another one."""
        if self.mysql:
            replica.execute(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{primary.host}',"
                f" SOURCE_PORT={primary.port}, SOURCE_USER='root', SOURCE_AUTO_POSITION=1,"
                " GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1",
                "START REPLICA",
            )
        else:
            replica.execute(
                f"CHANGE MASTER TO MASTER_HOST='{primary.host}', MASTER_PORT={primary.port},"
                " MASTER_USER='root', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1",
                "START SLAVE",
            )

    def executed(self, server: DatabaseServer) -> str:
        """The GTIDs that a server has in its binlog."""
        variable = "gtid_executed" if self.mysql else "gtid_binlog_pos"
        return str(server.execute(f"SELECT @@global.{variable}")[0][0]).replace("\n", "")

    def until_replicated(self) -> None:
        """Wait until the replica has all that the primary has."""
        wanted = self.executed(self.primary)
        deadline = time.monotonic() + PATIENCE
        while not self._has(wanted):
            if time.monotonic() > deadline:
                shown = self.replica.execute(f"SHOW {'REPLICA' if self.mysql else 'SLAVE'} STATUS")
                raise AssertionError(f"{wanted} was not replicated: {shown}")
            time.sleep(LOOK_SECONDS)

    def _has(self, wanted: str) -> bool:
        if not self.mysql:
            return self.executed(self.replica) == wanted
        sql = f"SELECT GTID_SUBSET('{wanted}', @@global.gtid_executed)"
        return bool(self.replica.execute(sql)[0][0])

    def until_applied(self) -> None:
        """Wait until a replica has applied all that the primary has, logged or not."""
        if self.mysql:
            self.until_replicated()
            return
        wanted = self.executed(self.primary)
        sql = f"SELECT MASTER_GTID_WAIT('{wanted}', {PATIENCE})"
        assert self.replica.execute(sql)[0][0] == 0

    def promote(self) -> DatabaseServer:
        """Let the replica apply what it has received, and be a replica no more."""
        words = ("REPLICA", "REPLICA") if self.mysql else ("SLAVE", "SLAVE")
        self.replica.execute(f"STOP {words[0]}", f"RESET {words[1]} ALL")
        return self.replica


def is_mysql(kind: type[BinlogServer]) -> bool:
    return "MySQL" in kind.__name__

"""The faults of a source that another server has taken over, each with its remedies."""

from __future__ import annotations

from dataclasses import dataclass

from actors.faults import COPY_ANEW, FatalError, of_source
from replicator.mysql.server.identity import ServerIdentity

_FORMER = "point the source at the former server again, then `replicator resume`"


@dataclass(frozen=True, slots=True)
class Failover:
    """``server`` answers at ``address`` in place of the ``former`` server.

    The task has read the source to ``position`` of the former server's binlog, where its GTID set
    was ``executed``.
    """

    source: str
    address: str
    former: ServerIdentity
    server: ServerIdentity
    position: str
    executed: str

    def lacks(self, gtids: str) -> FatalError:
        """It lacks transactions that the task has read from the former server."""
        return self._source_fault(
            "source.lacks-transactions",
            f"{self._now}it lacks transactions that the task has read from the former server, and"
            f" of which some may be on the target: {gtids}. They were lost in the failover, or it"
            " is no replica of the former server",
            f"if the former server still has them: {_FORMER}",
            "if you can replay them with their GTIDs on the new server (from the former server's"
            " binlog files, with mysqlbinlog): do that before it gets other writes, then"
            " `replicator resume`",
            f"if they are lost: {COPY_ANEW}; or undo by hand what they changed on the target, then"
            " start with `replicator run --remove-meta` and meta: {binlog-gtid: …} of the new"
            " server",
        )

    def unlogged(self, gtids: str) -> FatalError:
        """It has applied these transactions without logging them."""
        return self._source_fault(
            "source.lacks-transactions",
            f"{self._now}it has applied these transactions without writing them to its binlog:"
            f" {gtids}. So the task can't go on there from where it stopped reading the former"
            " server",
            _FORMER,
            f"{COPY_ANEW}. Next time: replicas that may take over need log_replica_updates"
            " (log_slave_updates)",
        )

    def purged(self, gtids: str) -> FatalError:
        """Its binlog no longer has the transactions that come next."""
        return self._source_fault(
            "source.purged",
            f"{self._now}its binlog no longer has the transactions that come next: {gtids}"
            " (purged, or applied without being logged: log_replica_updates)",
            "restore the purged binlog files on it, or point the source at a server that has"
            " them, then `replicator resume`",
            COPY_ANEW,
        )

    def other_order(self, reason: str) -> FatalError:
        """Its binlog has transactions in another order than the former server's."""
        return self._source_fault(
            "source.other-order",
            f"{self._now}its binlog has transactions in another order, so the task can't find"
            f" where to go on: {reason}",
            _FORMER,
            COPY_ANEW,
            "to prevent this: replicas that may take over must keep the commit order"
            " (replica_preserve_commit_order; MariaDB: gtid_strict_mode, one domain), filter"
            " nothing, and get no writes of their own",
        )

    def no_gtids(self) -> FatalError:
        """The source was followed by file and position."""
        return self._source_fault(
            "source.failover-position-unknown",
            f"{self._now}the task followed the source by file and position, so it does not know"
            " the GTIDs at the saved position, and can't find that position on the new server",
            f"{_FORMER}. With `enable-gtid: true`, the task learns the GTIDs there when it"
            " starts, and can go on with any replica from then on",
            COPY_ANEW,
        )

    def unknown(self, reason: str) -> FatalError:
        """A saved position can't be found by GTIDs."""
        return self._source_fault(
            "source.failover-position-unknown",
            f"{self._now}the task can't find on it for certain all positions that it saved on the"
            f" former server: {reason}",
            _FORMER,
            COPY_ANEW,
        )

    def in_copy(self) -> FatalError:
        """The tables are being copied."""
        return self._source_fault(
            "source.failover-in-copy",
            f"{self._now}the copy of its tables has not finished, or the task has not read its"
            " binlog to the end of the copy yet. Chunks were read at positions of the former"
            " server's binlog, which are unknown on the new one",
            _FORMER,
            COPY_ANEW,
        )

    @property
    def _now(self) -> str:
        return f"{self.address} is another server now ({self.server}; before: {self.former}), and "

    def _source_fault(self, failover_event: str, message: str, *remedies: str) -> FatalError:
        """The fault of the source."""
        executed = f" ({self.executed})" if self.executed else ""
        return FatalError(
            failover_event,
            message,
            *remedies,
            where=f"source {self.source}, after {self.position}{executed}",
            scope=of_source(self.source),
        )

"""The faults of a source that another server has taken over, each with its remedies."""

from __future__ import annotations

from dataclasses import dataclass

from actors.faults import COPY_ANEW, FatalError, of_source
from replicator.mysql.server.identity import ServerIdentity

_FORMER = "point the source at the former server again, then `replicator resume`"


@dataclass(frozen=True, slots=True)
class Failover:
    """At ``address`` ``server`` answers in place of the ``former`` one, of whose binlog a source is
    saved at ``position`` with the GTID set ``executed``."""

    source: str
    address: str
    former: ServerIdentity
    server: ServerIdentity
    position: str
    executed: str

    def lacks(self, gtids: str) -> FatalError:
        """It never had transactions that were read from the former one."""
        return self._source_fault(
            "source.lacks-transactions",
            "it lacks transactions that were read from the former one, of which some may be on"
            f" the target: {gtids}. They were lost in the failover, or it is no replica of that"
            " server",
            f"where the former server has them still: {_FORMER}",
            "where they can be brought over to the new one with their GTIDs (from the former"
            " one's binlog files, by mysqlbinlog), do that before others are written there,"
            " then `replicator resume`",
            f"where they are lost: {COPY_ANEW}; or set right by hand what they changed on the"
            " target, then start with `replicator run --remove-meta` and meta: {binlog-gtid} of"
            " the new server",
        )

    def unlogged(self, gtids: str) -> FatalError:
        """It has applied what was read from the former one, and not logged it."""
        return self._source_fault(
            "source.lacks-transactions",
            f"it has applied these transactions, and not written them to its binlog: {gtids}. So"
            " that can't be followed from where the former one's was read to",
            _FORMER,
            "replicas that may take over need log_slave_updates (log_replica_updates); for this"
            f" time {COPY_ANEW}",
        )

    def purged(self, gtids: str) -> FatalError:
        """It has no more what comes next."""
        return self._source_fault(
            "source.purged",
            f"it no longer has transactions in its binlog that come next: {gtids} (purged, or"
            " applied without being logged: log_replica_updates)",
            "restore the purged binlog files on it, or point the source at a server that has"
            " them, then `replicator resume`",
            COPY_ANEW,
        )

    def other_order(self, reason: str) -> FatalError:
        """Other transactions stand before the places that are sought."""
        return self._source_fault(
            "source.other-order",
            f"the places to go on from are not there: {reason}",
            _FORMER,
            COPY_ANEW,
            "so that it does not come again: replicas that may take over must keep the order of"
            " commits (replica_preserve_commit_order; MariaDB: gtid_strict_mode, one domain),"
            " filter nothing, and get no writes of their own",
        )

    def no_gtids(self) -> FatalError:
        """The source was followed by file and position."""
        return self._source_fault(
            "source.failover-position-unknown",
            "the GTIDs executed at the saved position are not known, since the source was followed"
            " by file and position: so where to go on from can't be looked for on it",
            f"{_FORMER}: with `enable-gtid: true` the task learns them there at its start, and goes"
            " on with any replica from then on",
            COPY_ANEW,
        )

    def unknown(self, reason: str) -> FatalError:
        """Something is saved at a place that can't be found by GTIDs."""
        return self._source_fault(
            "source.failover-position-unknown",
            "it is not certain where on it everything stands that is saved of the former one:"
            f" {reason}",
            _FORMER,
            COPY_ANEW,
        )

    def in_copy(self) -> FatalError:
        """The tables are being copied."""
        return self._source_fault(
            "source.failover-in-copy",
            "the copy of its tables is not done, or its binlog was not followed yet to where"
            " the copy ended: chunks were read at places of the former server's binlog, which"
            " are not known on this one",
            _FORMER,
            COPY_ANEW,
        )

    def _source_fault(self, failover_event: str, what: str, *remedies: str) -> FatalError:
        """That of the source, for ``what`` is wrong with the server that answers now."""
        executed = f" ({self.executed})" if self.executed else ""
        return FatalError(
            failover_event,
            f"{self.address} is another server now ({self.server}; before: {self.former}), and"
            f" {what}",
            where=f"source {self.source}, after {self.position}{executed}",
            scope=of_source(self.source),
            remedies=remedies,
        )

"""The faults of a source that another server has taken over, each with its ways out."""

from __future__ import annotations

from dataclasses import dataclass

from actors.faults import FatalError, of_source
from replicator.mysql.identity import ServerIdentity

_COPY_ANEW = "copy the tables anew: empty the targets, `replicator run --remove-meta`"
_FORMER = "point the source at the former server again, then `replicator resume`"


@dataclass(frozen=True, slots=True)
class Takeover:
    """At ``address`` ``server`` answers in place of the ``former`` one, of whose binlog a source is
    saved at ``position`` with the GTID set ``executed``."""

    source: str
    address: str
    former: ServerIdentity
    server: ServerIdentity
    position: str
    executed: str

    def _is(self, what: str) -> str:
        before = f"before: {self.former}"
        return f"{self.address} is another server now ({self.server}; {before}), and {what}"

    @property
    def _where(self) -> str:
        return f"source {self.source}, after {self.position} ({self.executed})"

    def lacks(self, gtids: str) -> FatalError:
        """It never had transactions that were read from the former one."""
        return FatalError(
            "source.lacks-transactions",
            self._is(
                "it lacks transactions that were read from the former one, of which some may be on"
                f" the target: {gtids}. They were lost in the failover, or it is no replica of that"
                " server"
            ),
            where=self._where,
            scope=of_source(self.source),
            ways_out=(
                f"where the former server has them still: {_FORMER}",
                "where they can be brought over to the new one with their GTIDs (from the former"
                " one's binlog files, by mysqlbinlog), do that before others are written there,"
                " then `replicator resume`",
                f"where they are lost: {_COPY_ANEW}; or set right by hand what they changed on the"
                " target, then start with `replicator run --remove-meta` and meta: {binlog-gtid} of"
                " the new server",
            ),
        )

    def unlogged(self, gtids: str) -> FatalError:
        """It has applied what was read from the former one, and not logged it."""
        return FatalError(
            "source.lacks-transactions",
            self._is(
                "it has applied these transactions, and not written them to its binlog:"
                f" {gtids}. So that can't be followed from where the former one's was read to"
            ),
            where=self._where,
            scope=of_source(self.source),
            ways_out=(
                _FORMER,
                "replicas that may take over need log_slave_updates (log_replica_updates); for this"
                f" time {_COPY_ANEW}",
            ),
        )

    def purged(self, gtids: str) -> FatalError:
        """It has no more what comes next."""
        return FatalError(
            "source.purged",
            self._is(
                f"it no longer has transactions in its binlog that come next: {gtids} (purged, or"
                " applied without being logged: log_replica_updates)"
            ),
            where=self._where,
            scope=of_source(self.source),
            ways_out=(
                "restore the purged binlog files on it, or point the source at a server that has"
                " them, then `replicator resume`",
                _COPY_ANEW,
            ),
        )

    def other_order(self, reason: str) -> FatalError:
        """Other transactions stand before the places that are sought."""
        return FatalError(
            "source.other-order",
            self._is(f"the places to go on from are not there: {reason}"),
            where=self._where,
            scope=of_source(self.source),
            ways_out=(
                _FORMER,
                _COPY_ANEW,
                "so that it does not come again: replicas that may take over must keep the order of"
                " commits (replica_preserve_commit_order; MariaDB: gtid_strict_mode, one domain),"
                " filter nothing, and get no writes of their own",
            ),
        )

    def unknown(self, reason: str) -> FatalError:
        """Something is saved at a place that can't be found by GTIDs."""
        return FatalError(
            "source.place-unknown",
            self._is(
                "it is not certain where on it everything stands that is saved of the former one:"
                f" {reason}"
            ),
            where=self._where,
            scope=of_source(self.source),
            ways_out=(_FORMER, _COPY_ANEW),
        )

    def in_copy(self) -> FatalError:
        """The tables are being copied."""
        return FatalError(
            "source.failover-in-copy",
            self._is(
                "the copy of its tables is not done, or its binlog was not followed yet to where"
                " the copy ended: chunks were read at places of the former server's binlog, which"
                " are not known on this one"
            ),
            where=self._where,
            scope=of_source(self.source),
            ways_out=(_FORMER, _COPY_ANEW),
        )

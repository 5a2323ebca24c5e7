"""The faults of a source whose binlog can't be followed, each with its remedies."""

from __future__ import annotations

from collections.abc import Mapping

from actors.errors.faults import (
    FatalError,
    Recovery,
    fault,
)
from actors.reading.uncopied_members import UncopiedMemberError, uncopied_rows
from replicator.binlog.errors import (
    AccessRefusedError,
    AnchorGoneError,
    BinlogError,
    DamagedStreamError,
    GtidModeError,
    OtherBinlogError,
    OtherNamesError,
    OtherServerError,
    PurgedError,
    StreamLostError,
    WithoutGtidError,
)
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.watermark import Place


def source_fault(
    source: str,
    place: object,
    error: BinlogError,
    *,
    by_gtid: bool = False,
    in_transaction: bool = False,
) -> FatalError:
    """Return the fault for an error of a binlog that was read up to ``place``.

    Args:
        by_gtid: whether the place can be found on another server, if one answers.
        in_transaction: whether rows of the transaction after ``place`` were read already.
    """
    where = f"source {source}, after {place}"
    if isinstance(error, OtherServerError):
        return other_server(source, str(error), where, by_gtid=by_gtid)
    if isinstance(error, OtherNamesError):
        return other_names(source, str(error), where)
    if isinstance(error, OtherBinlogError):
        return fault(
            "source.reset",
            # A start checks if it is another node with the same server_id.
            recovery=Recovery.FAILOVER
            if by_gtid and isinstance(error, AnchorGoneError)
            else Recovery.BY_OPERATOR,
            source=source,
            error=error,
            place=place,
            other_node=isinstance(error, AnchorGoneError) and error.read and not by_gtid,
        )
    if isinstance(error, PurgedError):
        return fault(
            "source.purged",
            "read",
            source=source,
            error=error,
            place=place,
            files="the purged binlog files",
        )
    if isinstance(error, GtidModeError):
        return gtid_mode(source, error, where)
    if isinstance(error, WithoutGtidError):
        return without_gtids(source, error, where)
    if isinstance(error, AccessRefusedError):
        return fault(
            "source.unreadable",
            "access",
            recovery=Recovery.OPERATOR_OR_RETRY,
            source=source,
            error=error,
            place=place,
        )
    case = "in-transaction" if in_transaction else "event"
    return fault("source.unreadable", case, source=source, error=error, place=place)


def gtid_mode(source: str, error: GtidModeError, where: str) -> FatalError:
    """Return the fault for transactions that the source refuses under its present gtid_mode."""
    return fault(
        "source.gtid-mode",
        source=source,
        error=error,
        where=where,
        wanted=error.wanted,
        final="ON" if error.wanted == "ON_PERMISSIVE" else "OFF",
    )


def without_gtids(source: str, error: WithoutGtidError, where: str) -> FatalError:
    """Return the fault for transactions without a GTID, which may or may not have been read."""
    return fault("source.without-gtids", source=source, error=error, where=where)


def other_server(source: str, message: str, where: str, *, by_gtid: bool) -> FatalError:
    """Return the fault for another server at a source's address."""
    return fault(
        "source.changed",
        recovery=Recovery.FAILOVER if by_gtid else Recovery.BY_OPERATOR,
        source=source,
        error=message,
        where=where,
        by_gtid=by_gtid,
    )


def other_names(source: str, message: str, where: str) -> FatalError:
    """Return the fault for a server that compares table names by other rules than before."""
    return fault("source.name-case", source=source, finding=message, where=where)


def refuse_other_server(
    source: str, address: object, saved: ServerIdentity, found: ServerIdentity, *, by_gtid: bool
) -> None:
    """Raise FatalError if a checkpoint belongs to another server.

    A server that compares table names by other rules counts as another server, too.
    """
    if saved.is_same(found):
        if not saved.names_alike(found):
            raise other_names(
                source,
                f"source {source} ({address}) has another lower_case_table_names than when the"
                f" checkpoint was saved: now it takes names of tables"
                f" {'without' if found.folds_names else 'with'} their case",
                f"source {source}",
            )
        return
    raise other_server(
        source,
        f"the checkpoint of source {source} is of the server with {saved}, but {address} has"
        f" {found}: positions of different servers can't be compared",
        f"source {source}",
        by_gtid=by_gtid,
    )


Start = tuple[SourcePosition | GtidStart, Place | None]
"""The position at which a stream continues, and the last row event that was sent on."""


class StreamErrors:
    """The errors of one source's streams, and the place of the last damaged event.

    ``by_gtid``: whether GTIDs can find the place on another server, if one answers.
    """

    def __init__(self, source: str, *, by_gtid: bool) -> None:
        self._source = source
        self._by_gtid = by_gtid
        self._damaged: Start | None = None

    def of(
        self, error: BinlogError, start: Start, uncopied: Mapping[TableName, TableName]
    ) -> FatalError | StreamLostError:
        """Return the exception for an error of a stream that continues from ``start``.

        Damage in transit does not repeat, so the first damage counts as a lost stream. A second one
        after the same place is a fault. ``uncopied``: the table of an UncopiedMemberError, with its
        target.
        """
        if isinstance(error, DamagedStreamError) and self._damaged != start:
            self._damaged = start
            return StreamLostError(str(error))
        if isinstance(error, UncopiedMemberError):
            assert uncopied
            return uncopied_rows(self._source, uncopied, start[0])
        return source_fault(
            self._source,
            start[0],
            error,
            by_gtid=self._by_gtid,
            in_transaction=start[1] is not None,
        )

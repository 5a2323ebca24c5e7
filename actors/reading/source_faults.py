"""The faults of a source whose binlog can't be followed, each with its remedies."""

from __future__ import annotations

from collections.abc import Mapping

from actors.faults import COPY_AGAIN, FatalError, Recovery, begin_again, of_source, start_after
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

_PLACE = (
    "`meta:` of source {source} (binlog-name, binlog-pos) to the end of its transaction (SHOW"
    " BINLOG EVENTS shows the position)"
)

FORMER_SERVER = "point the source at the former server again, then `replicator resume`"


def restore_files(files: str) -> str:
    """Return the remedy for binlog files that are gone."""
    return (
        f"restore {files} at the source; or, if the task follows it with `enable-gtid: true`, point"
        " the source at a replica that has them. Then `replicator resume`"
    )


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
        by_gtid: if another server answers, the place can be found there.
        in_transaction: rows of the transaction after ``place`` were read already.
    """
    where = f"source {source}, after {place}"
    if isinstance(error, OtherServerError):
        return other_server(source, str(error), where, by_gtid=by_gtid)
    if isinstance(error, OtherNamesError):
        return other_names(source, str(error), where)
    if isinstance(error, OtherBinlogError):
        moved = isinstance(error, AnchorGoneError) and error.read and not by_gtid
        return FatalError(
            "source.reset",
            str(error),
            *((_OTHER_NODE.format(source=source),) if moved else ()),
            "if another server answers at the source's address: point the address at the"
            " former server, then `replicator resume`",
            f"if the binlog was reset, the events in between are lost: {begin_again(source)}",
            COPY_AGAIN,
            where=where,
            scope=of_source(source),
            # A start checks if it is another node with the same server_id.
            recovery=Recovery.FAILOVER
            if by_gtid and isinstance(error, AnchorGoneError)
            else Recovery.BY_OPERATOR,
        )
    if isinstance(error, PurgedError):
        return FatalError(
            "source.purged",
            str(error),
            restore_files("the purged binlog files"),
            begin_again(source),
            COPY_AGAIN,
            where=where,
            scope=of_source(source),
        )
    if isinstance(error, GtidModeError):
        return gtid_mode(source, error, where)
    if isinstance(error, WithoutGtidError):
        return without_gtids(source, error, where)
    if isinstance(error, AccessRefusedError):
        return FatalError(
            "source.unreadable",
            str(error),
            "at the source, set the account's password to that of the task file, or grant"
            " what the message names, then `replicator resume`: the task goes on where it was",
            "to use a new password, user or certificate: change the task file, then"
            " `replicator reload`; `replicator resume` does not read the task file again",
            where=where,
            scope=of_source(source),
        )
    return _unreadable(source, error, where, in_transaction=in_transaction)


_OTHER_NODE = (
    "if another node of a Galera cluster answers, with the same server_id and wsrep_gtid_mode=ON:"
    " set `enable-gtid: true` for source {source}, then `replicator reload`. The task"
    " finds by GTIDs where to go on"
)


def _unreadable(source: str, error: BinlogError, where: str, *, in_transaction: bool) -> FatalError:
    """Return the fault for an event that can't be read."""
    if in_transaction:
        return FatalError(
            "source.unreadable",
            f"{error}\n"
            "  Rows of the same transaction, which come before this, are on the targets already. So"
            " the transaction can't be made by hand, and a start after it is not possible.",
            "remove the cause at the source, then `replicator resume`",
            COPY_AGAIN,
            where=where,
            scope=of_source(source),
        )
    return FatalError(
        "source.unreadable",
        str(error),
        "remove the cause at the source, then `replicator resume`",
        "if the cause is in the binlog itself: make all changes of the event's transaction by hand"
        " on the target (`mysqlbinlog` shows them, or the shard), and start after the event:"
        f" {start_after(_PLACE.format(source=source))}",
        COPY_AGAIN,
        where=where,
        scope=of_source(source),
    )


def gtid_mode(source: str, error: GtidModeError, where: str) -> FatalError:
    """Return the fault for transactions that the source refuses under its present gtid_mode."""
    wanted = error.wanted
    final = "ON" if wanted == "ON_PERMISSIVE" else "OFF"
    how = f"execute `SET GLOBAL gtid_mode = {wanted}`"
    if wanted == "ON":
        how = "restart the server with `gtid_mode = ON` (MySQL 5.6 can't change it otherwise)"
    return FatalError(
        "source.gtid-mode",
        str(error),
        f"at source {source}, {how}, then `replicator resume`: the task reads them by file and"
        f" position. Set gtid_mode back to {final} when `replicator status` shows a lag of 0",
        where=where,
        scope=of_source(source),
    )


def without_gtids(source: str, error: WithoutGtidError, where: str) -> FatalError:
    """Return the fault for transactions without a GTID, which may or may not have been read."""
    return FatalError(
        "source.without-gtids",
        f"{error}. The task can find its place in this binlog only by GTIDs, and they do not show"
        " whether the rows of these transactions are on the target",
        "if this is the first start of the task: `replicator stop`, give the instance the exact"
        " start as binlog-name and binlog-pos instead of binlog-gtid, then `replicator run`",
        f"if another server has taken over the source: {FORMER_SERVER}",
        COPY_AGAIN,
        where=where,
        scope=of_source(source),
    )


def other_server(source: str, message: str, where: str, *, by_gtid: bool) -> FatalError:
    """Return the fault for another server at a source's address."""
    go_on = (
        "if one of the two servers is a replica of the other, with GTIDs: set `enable-gtid: true`"
        f" for source {source}, then `replicator reload`. The task finds by GTIDs"
        " where to go on. On MySQL, the task must have started with this setting at the former"
        " server before",
    )
    return FatalError(
        "source.changed",
        message,
        f"point source {source} at the former server again, then `replicator resume`",
        *(() if by_gtid else go_on),
        f"to go on with an unrelated server: {begin_again(source)}",
        COPY_AGAIN,
        where=where,
        scope=of_source(source),
        recovery=Recovery.FAILOVER if by_gtid else Recovery.BY_OPERATOR,
    )


def other_names(source: str, message: str, where: str) -> FatalError:
    """Return the fault for a server that compares table names by other rules than before."""
    return FatalError(
        "source.name-case",
        f"{message}. Statements in its binlog spell table names in the former way before the"
        " change and in the new way after it, so the task could take one table for another",
        f"set lower_case_table_names of source {source} back to the former value, then"
        " `replicator resume`",
        "to keep the new value: set the former value once more. While nothing writes to the"
        " shards of any source, let the task read to the end of the binlogs (`replicator"
        " status`: lag 0), and `replicator stop`. No schema change may be open (`replicator"
        " show-ddl-locks`), no part blocked, no copy unfinished, and no key in two shards"
        " (`moved.shared` in the log). Then change the value, set `task-mode: incremental` and"
        " meta: of all instances to the present ends of their binlogs (SHOW MASTER STATUS, or"
        " SHOW BINARY LOG STATUS on MySQL 8.4 and newer), and `replicator run --remove-meta`."
        " Only then let the applications write again",
        where=where,
        scope=of_source(source),
    )


def refuse_other_server(
    source: str, address: object, saved: ServerIdentity, found: ServerIdentity, *, by_gtid: bool
) -> None:
    """Raise FatalError if a checkpoint belongs to another server, or to other rules for comparing
    table names."""
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
"""The position at which a stream continues, and the last row event that was handed on."""


class StreamErrors:
    """The errors of one source's streams, and the place of its last damage.

    ``by_gtid``: if another server answers, GTIDs can find the place there.
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

"""The faults of a source whose binlog can't be followed, each with its ways out."""

from __future__ import annotations

from actors.faults import FatalError, of_source
from replicator.binlog.errors import (
    BinlogError,
    OtherBinlogError,
    OtherNamesError,
    OtherServerError,
    PurgedError,
)
from replicator.mysql.identity import ServerIdentity

_COPY_ANEW = "copy the tables anew and start behind the copy with remove-meta"


def source_fault(
    source: str, place: object, error: BinlogError, *, by_gtid: bool = False
) -> FatalError:
    """The fault for what is wrong with a binlog that was read up to ``place``.

    ``by_gtid``: where another server answers, the place can be looked for there.
    """
    where = f"source {source}, after {place}"
    if isinstance(error, OtherServerError):
        return other_server(source, str(error), where, by_gtid=by_gtid)
    if isinstance(error, OtherNamesError):
        return other_names(source, str(error), where)
    if isinstance(error, OtherBinlogError):
        return FatalError(
            "source.reset",
            str(error),
            where=where,
            scope=of_source(source),
            ways_out=(
                "where another server answers under the source's address: point the address at the"
                " former one, then `replicator resume`",
                f"where the binlog was begun anew, what was written in between is not known:"
                f" {_COPY_ANEW}",
            ),
        )
    if isinstance(error, PurgedError):
        return FatalError(
            "source.purged",
            str(error),
            where=where,
            scope=of_source(source),
            ways_out=(
                "restore the purged binlog files on the source, or point the source at a replica"
                " that has them, then `replicator resume`",
                _COPY_ANEW,
            ),
        )
    return FatalError(
        "source.unreadable",
        str(error),
        where=where,
        scope=of_source(source),
        ways_out=(
            "mend the cause at the source, then `replicator resume`",
            "if it lies in the binlog itself: bring over by hand what the event did, then start the"
            " task behind it with remove-meta and meta: {binlog-name, binlog-pos} (SHOW BINLOG"
            " EVENTS tells the position); not while `replicator show-ddl-locks` shows a lock, whose"
            " held rows stand before it",
        ),
    )


def other_server(source: str, message: str, where: str, *, by_gtid: bool) -> FatalError:
    """The fault that another server answers under a source's address."""
    go_on = (
        "if it is a replica of the former one (or the other way round) and has GTIDs: set"
        f" `enable-gtid: true` for source {source}, `replicator stop`, `replicator run`; the place"
        " to go on from is found there by them",
    )
    return FatalError(
        "source.changed",
        message,
        where=where,
        scope=of_source(source),
        ways_out=(
            f"point source {source} at the former server again, then `replicator resume`",
            *(() if by_gtid else go_on),
            f"to go on with any other server: {_COPY_ANEW}",
        ),
        moved=by_gtid,
    )


def other_names(source: str, message: str, where: str) -> FatalError:
    """The fault that a server takes other names of tables for one than before."""
    return FatalError(
        "source.name-case",
        f"{message}. The statements in its binlog name tables in the former way up to the change"
        " and in the new one behind it, so their tables could be mistaken",
        where=where,
        scope=of_source(source),
        ways_out=(
            f"set lower_case_table_names of source {source} back, then `replicator resume`",
            "to keep the new value: with the former one let the task come to the end of the binlog"
            " and `replicator stop`; then change it, and start behind the change with"
            " `replicator run --remove-meta` and meta: of all instances",
        ),
    )


def refuse_other_server(
    source: str, address: object, saved: ServerIdentity, found: ServerIdentity, *, by_gtid: bool
) -> None:
    """Raise FatalError where a checkpoint is of another server than the one that answers, or names
    of tables were compared otherwise then."""
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

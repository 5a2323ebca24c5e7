"""Events of the log: sources."""

from __future__ import annotations

from replicator.events.log_event import info, warning

SOURCE_EVENTS = (
    info(
        "source.connected",
        "The task reads a binlog from this position",
        "source position",
    ),
    info(
        "source.start-found",
        "The task has found where a source's binlog stands at the time that it is to begin with",
        "source position",
        time="the time",
    ),
    warning(
        "source.lost",
        "The connection to a source broke, or data that came through it was damaged. The task "
        "opens the connection again. Damage at the same place a second time is a fault",
        "source position error",
        times="since when, and when the next attempt is; empty before the first one",
        seconds="the wait before the next attempt",
        no_row_lost="The task goes on at the exact event, and first proves that it is the same "
        "server with the same binlog",
    ),
    warning(
        "source.unavailable",
        "A run begins, and the server of a source does not answer, or it is a replica that took "
        "over and has not yet applied what the task read before. The other sources go on without "
        "it",
        "source reason",
        no_row_lost="The task reads and skips nothing of this source, and later continues from "
        "its saved position",
    ),
    info(
        "source.available",
        "The source answers again. A new run begins with it",
        "source",
    ),
    warning(
        "source.blocked",
        "The task stops reading a source",
        "source",
        fault="the event of the fault; empty where the operator paused the source",
        no_row_lost="The task applies and saves what it has read. Reading goes on from there",
    ),
    info(
        "source.resumed",
        "The task reads the source again from its saved position",
        "source",
    ),
    info(
        "source.finishing",
        "A source has a fault. The task first applies and saves what it read before",
        "source reason",
    ),
    info(
        "source.restarting",
        "A source starts again from its saved position, to read the rows that were held",
        "source position",
    ),
    info(
        "source.reopened",
        "An idle stream stays at its position while the binlog of the source ends elsewhere. The "
        "task opens the stream again, and so finds out whether it is still the same binlog "
        "(`source.reset`)",
        "source position",
        end="where the binlog ends",
    ),
    info(
        "source.failover-lookup",
        "Another server answers at the address of a source. The task looks up where its saved "
        "positions are in the binlog of that server",
        "source",
        server="the identity of the server",
    ),
    info(
        "source.failed-over",
        "The task has found and saved its positions on the other server. The source goes on there",
        "source position",
        server="the identity of the server that answers now",
        former="the identity of the former server",
        former_position="the same place on the former server",
        gtid="the saved GTID set",
    ),
    warning(
        "source.no-tables",
        "The task replicates no table of a source",
        "source",
        tables="the number of tables that the user sees",
        no_row_lost="The task file says so. The task replicates a table that is created later",
    ),
    warning(
        "route.unused",
        "A route matches no table of a source. A process logs this once, like other warnings "
        "about the state at a start",
        "source",
        message="the route, and what it names",
        no_row_lost="A route decides where tables go. One that matches no table changes nothing "
        "for the tables that exist",
    ),
    warning(
        "sequence.not-replicated",
        "A sequence of a source (MariaDB) has a name that is routed to a target. The task does "
        "not replicate it, and leaves out the rows that its uses log. Values that it gave to "
        "other tables are in their own rows",
        "source target",
        sequence="the name of the sequence",
        no_row_lost="A sequence holds no rows, only its next number. Numbers that it gave are in "
        "the rows that got them",
    ),
    warning(
        "source.purge-near",
        "The source must be read again from a position that it will soon purge. A lock is open, a "
        "target or the source is blocked, a full copy runs, or XA transactions are prepared",
        "source position reason",
        files_left="the number of older binlog files; with 0 the needed one is purged next",
        files_behind="the number of binlog files begun after the needed one",
        bytes_behind="the bytes from the position to the end of the binlog",
        locks="the open locks",
        held="the targets with held rows",
        no_row_lost="All files still exist. Once a needed one is gone, `source.purged` blocks the "
        "source, or, for an XA transaction, `source.unreadable` where it is committed",
    ),
    warning(
        "source.binlogs-unknown",
        "The source does not list its binlog files. The task can't warn before the source purges "
        "a needed one",
        "source error",
        no_row_lost="Only the early warning is missing: `source.purged` still comes",
    ),
    warning(
        "source.prepared-unchecked",
        "The source does not list its prepared XA transactions (MySQL 8 and later require "
        "XA_RECOVER_ADMIN). The task does not notice one that has no outcome in the binlog",
        "source reason",
        no_row_lost="The task applies prepared transactions where they are committed. It keeps, "
        "unnoticed, only one that ends without being logged (`sql_log_bin=0`)",
    ),
    warning(
        "source.prepared-purged",
        "XA transactions were prepared in binlog files that are gone, and their outcome is still "
        "unknown",
        "source",
        places="where they were prepared",
        no_row_lost="If one of them is committed, `source.unreadable` blocks the source there. "
        "One that is rolled back has no rows",
    ),
    info(
        "source.prepared-found",
        "The task has found the prepared XA transaction that it searched for",
        "source",
        places="the places of prepared XA transactions; the first is the one found",
    ),
    info(
        "source.xa-search",
        "An XA transaction is committed that was prepared before reading began. The task searches "
        "a file for it",
        "source",
        file="the binlog file",
    ),
)
"""Sources, in the order of the page."""

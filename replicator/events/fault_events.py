"""Events of the log: the faults, which block a target, a source or the task."""

from __future__ import annotations

from replicator.events.log_event import LogEvent, fields_of

_FIELDS = fields_of("error", "where", "remedies")

FAULT_EVENTS = (
    LogEvent(
        "server.refused",
        "error",
        "A server refuses the login or a statement of the task",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "spark.not-started",
        "error",
        "Spark can't be started",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "spark.executors",
        "error",
        "The Spark cluster gives no executors, or they lack what they need",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "spark.failing",
        "error",
        "Spark failed run after run, and nothing was done in between",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.lease-lost",
        "error",
        "Another process has taken over the task. This process ends",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.leftovers",
        "error",
        "Some meta tables of the task are missing",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.other-tables",
        "error",
        "A table with the name of a meta table has other columns",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.other-sources",
        "error",
        "The meta tables belong to other sources than those of the task file",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.removed",
        "error",
        "Somebody removed the meta tables while the task ran. The process ends",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.unexpected",
        "error",
        "An executor failed twice with the same unexpected error",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.no-start",
        "error",
        "The source has neither a checkpoint nor a position in the task file",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.check-failed",
        "error",
        "At a start, a check fails for a source that the task followed before",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.changed",
        "error",
        (
            "The source is another server than that of the checkpoint, or than before the "
            "connection was lost"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.lacks-transactions",
        "error",
        (
            "Another server has taken over a source, and lacks transactions that the task read "
            "from the former one"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.other-order",
        "error",
        (
            "Another server has taken over a source, and has the transactions in another order, "
            "or others among them"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.failover-position-unknown",
        "error",
        (
            "Another server has taken over a source, and it is not certain where a saved "
            "position is in its binlog"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.failover-in-copy",
        "error",
        "Another server has taken over a source before its copy was complete",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.name-case",
        "error",
        "The `lower_case_table_names` of a source has changed",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.reset",
        "error",
        "The binlog of the source is not the one that the task read before",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.mode-changed",
        "error",
        "The task file has another `shard-mode` than the checkpoint",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.missed-ddl",
        "error",
        "A source is back in the task file, but the task decided schema changes without it",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.routes-changed",
        "error",
        "The routes changed while schema changes of the shards are open",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "task.rules-changed",
        "error",
        (
            "The rows on the target were written by other rules: other routes, allow lists, "
            "mappings, extracted columns or expression filters"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.purged",
        "error",
        "The source has purged the binlog that the task must read next",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.unreadable",
        "error",
        "The binlog has something that the task can't read for certain",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "source.no-binlog",
        "error",
        "A source that the task is to follow after the copy writes no binlog",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "copy.duplicate",
        "error",
        (
            "A row of a shard has a key that the target holds already, and "
            "`on-duplicate-logical` is `error`"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "copy.target-has-rows",
        "error",
        "A copy begins, and a target without a key has rows already",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "copy.refused",
        "error",
        "The task can't read or write a chunk",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "copy.no-room",
        "error",
        "A row to copy has a value that column mapping has no room for",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "copy.shard-changed",
        "error",
        (
            "A shard changed during its copy, so that the task can't tell its former rows, and "
            "can't copy it again"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "copy.unfinished",
        "error",
        "The task is to follow a binlog, and the copy before it is not complete",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "target.not-created",
        "error",
        "The task can't create a target like its shards",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "member.not-copied",
        "error",
        "A replicated shard existed at the full copy, and the task did not copy it",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.duplicate",
        "error",
        "Two rows have the same key in the target",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.refused",
        "error",
        "The target does not take a row",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.undecodable",
        "error",
        "The task can't read a row event",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.no-room",
        "error",
        "A row event has a value that column mapping has no room for",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.unfiltered",
        "error",
        "An expression filter has no answer for a row, such as a BIGINT out of its range",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.filter-unfit",
        "error",
        "An expression filter does not fit the table of the rows",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.no-plan",
        "error",
        "The structures of shard and target do not fit each other",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.structure-unknown",
        "error",
        "The structure of rows is not certain, and their events do not tell it",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "target.same-table",
        "error",
        "Two targets differ only in case, and their server takes both for one",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "target.not-transactional",
        "error",
        "The storage engine of a target can't roll back",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "target.locked",
        "warning",
        (
            "Another session has locked a target. The task sets the target aside, and tries it "
            "again by itself"
        ),
        no_row_lost="The task holds the rows of the target, and later reads them again",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.cascade-in-safe-mode",
        "error",
        (
            "A row that others refer to was deleted, or its key changed, during the copy or in "
            "safe mode, and foreign keys with an action tie the target"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "target.keys-differ",
        "error",
        (
            "Foreign keys change rows of a shard without logging it, and the target can't "
            "change its rows likewise, or the shard lost such keys while the task was stopped"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "target.missing",
        "error",
        "A target table does not exist",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.forbidden",
        "error",
        "A rule of `filters` demands an error at this statement",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.not-supported",
        "error",
        "The task can't carry over a schema change",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.several-tables",
        "error",
        "A statement changes several tables of one target",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.move-in",
        "error",
        "A rename would move a shard to another target",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.history",
        "error",
        "A DDL of a shard differs from the one that the target executed in its place",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.create-differs",
        "error",
        (
            "A shard is created with a structure that neither its target nor the other shards "
            "have or had"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.moved-unknown",
        "error",
        "The task can't look tracked keys up, because the key of the target has changed",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "rows.recreated-column",
        "error",
        (
            "Without coordination, a shard has written to a column whose name the target has "
            "since given to another column"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.computed",
        "error",
        (
            "A shard turns a plain column into a generated one, in which another shard stores "
            "values of its own"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.filtered-column",
        "error",
        (
            "A statement changes a column of an expression filter, so that the filter may judge "
            "earlier rows differently"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.other-values",
        "error",
        (
            "A shard adds a column with another default or formula than that of the target, "
            "without coordination or after an unlock; or its rows are in a column that the "
            "target created again"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.unclear",
        "error",
        (
            "Without coordination, a shard brings a statement that the target may already have "
            "in other words"
        ),
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.refused",
        "error",
        "The target refused a schema change",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.renumbers",
        "error",
        "An AUTO_INCREMENT column would number the rows of the target anew",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.nondeterministic-default",
        "error",
        "A new column would get other values in the target than in the shards (`uuid()`)",
        fields=_FIELDS,
        fault=True,
    ),
    LogEvent(
        "ddl.time-zone",
        "error",
        "A schema change depends on the time zone of the source, which the task can't tell",
        fields=_FIELDS,
        fault=True,
    ),
)
"""All faults, in the order of the page."""

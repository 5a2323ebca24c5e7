"""Events of the log: the full copy."""

from __future__ import annotations

from replicator.events.log_event import LogEvent, fields_of

_FIGURES = fields_of(
    tables="the number of shards",
    tables_done="the number of shards of which the target has every row",
    rows="the number of rows copied",
    rows_expected="the number of rows by the estimate of the servers; 0 where there is none",
    bytes="the size of the rows as text",
    chunks="the number of chunks copied",
    rows_per_second="the present rate",
    seconds_left="the time left at that rate",
    replaced="the number of rows that replaced one on the target with the same key",
    ignored="the number of rows left out because the target held their key",
    waiting="what the copy waits for",
    held="the targets that wait for the copy while the task follows all others",
    percent="the copied part of the expected rows and bytes",
    bytes_expected="the size of all rows, estimated; 0 where there is no estimate",
    seconds="the duration so far",
)

COPY_EVENTS = (
    LogEvent(
        "copy.started",
        "info",
        "A full copy begins or continues",
        fields=fields_of(sources="its sources"),
    ),
    LogEvent(
        "copy.progress",
        "info",
        (
            "The full copy reports its progress every 10 seconds. Rows and bytes include sent "
            "parts of unfinished chunks, unless Spark is a cluster"
        ),
        fields=_FIGURES,
    ),
    LogEvent(
        "copy.finished",
        "info",
        "The full copy is complete",
        fields=_FIGURES,
    ),
    LogEvent(
        "copy.progress-by-job",
        "debug",
        (
            "The session folder accepts no file for the progress within chunks. The task counts "
            "rows when their job is done"
        ),
        fields=fields_of("error"),
    ),
    LogEvent(
        "copy.source-finished",
        "info",
        (
            "All chunks of a source are on the target. The task applies its binlog in safe mode "
            "up to `end`"
        ),
        fields=fields_of("source", end="where safe mode ends"),
    ),
    LogEvent(
        "copy.filtered",
        "info",
        "The task copies only the rows of a shard that pass its expression filters",
        fields=fields_of(
            "source",
            "member",
            "target",
            rules="the names of the filters",
            condition="the SQL condition of the rows to copy",
        ),
    ),
    LogEvent(
        "copy.waits-for-others",
        "warning",
        (
            "Another session has locked a table of a source, or open or prepared transactions"
            " (`XA RECOVER`) write to it (on MariaDB, they delay the copy only while there are XA"
            " transactions). The task copies the table once they have ended. If they overlap"
            " without end, `SET GLOBAL max_write_lock_count = 16` at the source gives the task"
            " its turn on MySQL 8 and later"
        ),
        fields=fields_of("source"),
        no_row_lost="The task copies nothing before the writers have ended",
    ),
    LogEvent(
        "copy.shard-changed-meanwhile",
        "info",
        (
            "A shard was altered or renamed after its copy began. The task reads its rows with"
            " the former structure"
        ),
        fields=fields_of("source", "member", "target", now="its present name"),
    ),
    LogEvent(
        "copy.shard-gone",
        "info",
        (
            "A shard was dropped, emptied, or renamed to a name that is not replicated, after its"
            " copy began. The task copies no more of it"
        ),
        fields=fields_of("source", "member", "target", now="its last name"),
    ),
    LogEvent(
        "copy.deferred",
        "info",
        (
            "The task can't read a shard any more as it was when its copy began. It copies the "
            "shard again once its target has the statements of the shard"
        ),
        fields=fields_of("source", "member", "target", "reason"),
    ),
    LogEvent(
        "copy.key-dropped",
        "info",
        (
            "A shard dropped its primary key while the task copied it, so the task can't tell its"
            " rows apart any more. It empties these targets if they have only copied rows, and"
            " copies all their shards again"
        ),
        fields=fields_of(targets="the targets"),
    ),
    LogEvent(
        "copy.rechecked",
        "info",
        (
            "The saved position, or a target with deferred shards, has reached the place where "
            "the task may copy these shards. The task starts again to copy them"
        ),
    ),
    LogEvent(
        "copy.recopied",
        "info",
        "The task copies deferred shards from the saved position on",
        fields=fields_of("source", members="the shards"),
    ),
    LogEvent(
        "copy.in-background",
        "info",
        (
            "The task copies the shards of some targets while it follows all others. It holds "
            "the changes for these targets"
        ),
        fields=fields_of(targets="the targets"),
    ),
    LogEvent(
        "copy.taken-up",
        "info",
        (
            "The shards of these targets are copied. The task starts again to follow these "
            "targets, too"
        ),
        fields=fields_of(targets="the targets"),
    ),
    LogEvent(
        "copy.statements-later",
        "info",
        (
            "The task could not read the statements that arrived during a copy in the "
            "background. It tries again a minute later"
        ),
        fields=fields_of("source", "reason"),
    ),
    LogEvent(
        "copy.read-again",
        "info",
        (
            "Another table had just taken the name of a shard while the task read chunks of it. "
            "The task reads these chunks again"
        ),
        fields=fields_of("source", members="the shards"),
    ),
    LogEvent(
        "copy.retry",
        "warning",
        (
            "A server was unavailable, or other transactions were in the way. The task copies "
            "the chunk again"
        ),
        fields=fields_of(
            "reason",
            times="since when, and when the next attempt is",
            seconds="the wait before the next attempt",
        ),
        no_row_lost=(
            "A chunk and its record are one transaction: the target has it completely, once, or "
            "not at all"
        ),
    ),
    LogEvent(
        "copy.spark-failed",
        "warning",
        "A Spark job of the copy failed. The task tries it again",
        fields=fields_of("error", attempt="the number of failures in a row"),
        no_row_lost=(
            "A chunk and its record are one transaction: the target has it completely, once, or "
            "not at all"
        ),
    ),
    LogEvent(
        "copy.no-executors",
        "warning",
        "A Spark cluster has no executor for the chunks. The chunks wait for one",
        fields=fields_of("reason"),
        no_row_lost="The chunks wait, and each is one transaction with its record",
    ),
    LogEvent(
        "copy.recopy",
        "info",
        (
            "The operator has asked the task to empty these targets and copy them again, "
            "because rules of the task file changed"
        ),
        fields=fields_of(targets="the targets"),
    ),
    LogEvent(
        "copy.target-emptied",
        "warning",
        (
            "The task copied rows to a target, or deferred a shard of it, and the target is "
            "empty while some of its shards are not copied yet. The task copies all its shards "
            "again"
        ),
        fields=fields_of("target"),
        no_row_lost=(
            "The task copies all shards of the target again, including those that it had copied "
            "before"
        ),
    ),
    LogEvent(
        "target.created",
        "info",
        "The task creates a target like a shard",
        fields=fields_of(
            "target",
            like="the source and the shard",
            left_out="the foreign keys that the target does not get",
            auto_increment="the column that also counts in the target",
            engine="the storage engine of the shard, where another took its place",
            collations="collations that the target lacks, and those it has instead",
            warnings="warnings of the target",
        ),
    ),
    LogEvent(
        "target.has-rows",
        "warning",
        "A copy begins, and its target, which has a key, has rows already",
        fields=fields_of("target"),
        no_row_lost=(
            "The target has a key: a row of a shard that it already holds is `copy.duplicate`, "
            "unless `on-duplicate-logical` says otherwise. Without a key it is a fault"
        ),
    ),
    LogEvent(
        "target.emptied",
        "info",
        "The task has emptied a target, and copies it again",
        fields=fields_of("target"),
    ),
)
"""The full copy, in the order of the page."""

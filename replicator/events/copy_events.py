"""Events of the log: the full copy."""

from __future__ import annotations

from replicator.events.log_event import debug, info, warning

_FIGURES = {
    "tables": "the number of shards",
    "tables_done": "the number of shards of which the target has every row",
    "rows": "the number of rows copied",
    "rows_expected": "the number of rows by the estimate of the servers; 0 where there is none",
    "bytes": "the size of the rows as text",
    "chunks": "the number of chunks copied",
    "rows_per_second": "the present rate",
    "seconds_left": "the time left at that rate",
    "replaced": "the number of rows that replaced one on the target with the same key",
    "ignored": "the number of rows left out because the target held their key",
    "waiting": "what the copy waits for",
    "held": "the targets that wait for the copy while the task follows all others",
    "percent": "the copied part of the expected rows and bytes",
    "bytes_expected": "the size of all rows, estimated; 0 where there is no estimate",
    "seconds": "the duration so far",
}

COPY_EVENTS = (
    info(
        "copy.started",
        "A full copy begins or continues",
        sources="its sources",
    ),
    info(
        "copy.progress",
        "The full copy reports its progress every 10 seconds. Rows and bytes include sent parts "
        "of unfinished chunks, unless Spark is a cluster",
        **_FIGURES,
    ),
    info(
        "copy.finished",
        "The full copy is complete",
        **_FIGURES,
    ),
    debug(
        "copy.progress-by-job",
        "The session folder accepts no file for the progress within chunks. The task counts rows "
        "when their job is done",
        "error",
    ),
    info(
        "copy.source-finished",
        "All chunks of a source are on the target. The task applies its binlog in safe mode up to "
        "`end`",
        "source",
        end="where safe mode ends",
    ),
    info(
        "copy.filtered",
        "The task copies only the rows of a shard that pass its expression filters",
        "source member target",
        rules="the names of the filters",
        condition="the SQL condition of the rows to copy",
    ),
    warning(
        "copy.waits-for-others",
        "Another session has locked a table of a source, or open or prepared transactions (`XA "
        "RECOVER`) write to it (on MariaDB, they delay the copy only while there are XA "
        "transactions). The task copies the table once they have ended. If they overlap without "
        "end, `SET GLOBAL max_write_lock_count = 16` at the source gives the task its turn on "
        "MySQL 8 and later",
        "source",
        no_row_lost="The task copies nothing before the writers have ended",
    ),
    info(
        "copy.shard-changed-meanwhile",
        "A shard was altered or renamed after its copy began. The task reads its rows with the "
        "former structure",
        "source member target",
        now="its present name",
    ),
    info(
        "copy.shard-gone",
        "A shard was dropped, emptied, or renamed to a name that is not replicated, after its "
        "copy began. The task copies no more of it",
        "source member target",
        now="its last name",
    ),
    info(
        "copy.deferred",
        "The task can't read a shard any more as it was when its copy began. It copies the shard "
        "again once its target has the statements of the shard",
        "source member target reason",
    ),
    info(
        "copy.key-dropped",
        "A shard dropped its primary key while the task copied it, so the task can't tell its "
        "rows apart any more. It empties these targets if they have only copied rows, and copies "
        "all their shards again",
        targets="the targets",
    ),
    info(
        "copy.rechecked",
        "The saved position, or a target with deferred shards, has reached the place where the "
        "task may copy these shards. The task starts again to copy them",
    ),
    info(
        "copy.recopied",
        "The task copies deferred shards from the saved position on",
        "source",
        members="the shards",
    ),
    info(
        "copy.in-background",
        "The task copies the shards of some targets while it follows all others. It holds the "
        "changes for these targets",
        targets="the targets",
    ),
    info(
        "copy.taken-up",
        "The shards of these targets are copied. The task starts again to follow these targets, "
        "too",
        targets="the targets",
    ),
    info(
        "copy.statements-later",
        "The task could not read the statements that arrived during a copy in the background. It "
        "tries again a minute later",
        "source reason",
    ),
    info(
        "copy.read-again",
        "Another table had just taken the name of a shard while the task read chunks of it. The "
        "task reads these chunks again",
        "source",
        members="the shards",
    ),
    warning(
        "copy.retry",
        "A server was unavailable, or other transactions were in the way. The task copies the "
        "chunk again",
        "reason",
        times="since when, and when the next attempt is",
        seconds="the wait before the next attempt",
        no_row_lost="A chunk and its record are one transaction: the target has it completely, "
        "once, or not at all",
    ),
    warning(
        "copy.spark-failed",
        "A Spark job of the copy failed. The task tries it again",
        "error",
        attempt="the number of failures in a row",
        no_row_lost="A chunk and its record are one transaction: the target has it completely, "
        "once, or not at all",
    ),
    warning(
        "copy.no-executors",
        "A Spark cluster has no executor for the chunks. The chunks wait for one",
        "reason",
        no_row_lost="The chunks wait, and each is one transaction with its record",
    ),
    info(
        "copy.recopy",
        "The operator has asked the task to empty these targets and copy them again, because "
        "rules of the task file changed",
        targets="the targets",
    ),
    warning(
        "copy.target-emptied",
        "The task copied rows to a target, or deferred a shard of it, and the target is empty "
        "while some of its shards are not copied yet. The task copies all its shards again",
        "target",
        no_row_lost="The task copies all shards of the target again, including those that it had "
        "copied before",
    ),
    info(
        "target.created",
        "The task creates a target like a shard",
        "target",
        like="the source and the shard",
        left_out="the foreign keys that the target does not get",
        auto_increment="the column that also counts in the target",
        engine="the storage engine of the shard, where another took its place",
        collations="collations that the target lacks, and those it has instead",
        warnings="warnings of the target",
    ),
    warning(
        "target.has-rows",
        "A copy begins, and its target, which has a key, has rows already",
        "target",
        no_row_lost="The target has a key: a row of a shard that it already holds is "
        "`copy.duplicate`, unless `on-duplicate-logical` says otherwise. Without a key it is a "
        "fault",
    ),
    info(
        "target.emptied",
        "The task has emptied a target, and copies it again",
        "target",
    ),
)
"""The full copy, in the order of the page."""

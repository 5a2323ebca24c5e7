"""Events of the log: batches, rows and targets."""

from __future__ import annotations

from replicator.events.log_event import info, warning

BATCH_EVENTS = (
    warning(
        "target.blocked",
        "The task holds the rows of a target from now on. All other targets go on",
        "target",
        fault="the event of the fault; empty where the operator paused the target",
        no_row_lost="The task neither writes nor skips any of its rows: the saved positions stay "
        "before its first held event, and the task reads everything again when the target goes on",
    ),
    info(
        "target.resumed",
        "The task writes to the target again, from the saved positions on",
        "target",
    ),
    warning(
        "target.unwatched",
        "A running task can no longer see whether triggers, events or a TTL of the target change "
        "rows. It logs this once, until it can see it again",
        "remedies",
        reason="what the account may not see, or the server's words",
        no_row_lost="The task's own writes arrive. Give the right back, or look for yourself: what "
        "else changes rows makes the target differ from its shards, and the task can't notice",
    ),
    warning(
        "target.stalled",
        "The target does not get on with what the task has sent: its server can't be reached, or "
        "waits in the middle of a statement, for example for free disk space. The task asks it "
        "every 3 s, and logs this once for each reason",
        "reason",
        server="its address",
        times="since when, and when the task asks again",
        no_row_lost="Statements that the server does not end are sent again, and watermarks leave "
        "out what has arrived",
    ),
    info(
        "target.goes-on",
        "The target gets on with statements again",
        server="its address",
        seconds="how long it did not",
    ),
    warning(
        "target.lost-commits",
        "The target has less than the task has left there: a watermark of a bucket, or the number "
        "of the last save, is older. The task has written nothing on top of it, and reads "
        "everything again from what the target has",
        "target",
        what="the watermark or the number",
        expected="what the task has left",
        found="what the target has",
        bucket="the number of the bucket",
        no_row_lost="The task notices it before it writes on top. It reads the rows that the "
        "target lost again",
    ),
    warning(
        "batch.retry",
        "The target was unavailable, or other transactions were in the way. The task tries the "
        "batch again",
        "reason",
        times="since when, and when the next attempt is",
        seconds="the wait before the next attempt",
        no_row_lost="Rows and watermarks are one transaction: the next attempt leaves out what "
        "has arrived",
    ),
    warning(
        "batch.no-executors",
        "A Spark cluster has no executor for the batch. The batch waits for one",
        "reason",
        no_row_lost="Rows and watermarks are one transaction, and the batch waits",
    ),
    warning(
        "batch.spark-failed",
        "A Spark job of a batch failed. The task tries it again",
        "error",
        attempt="the number of failures in a row",
        no_row_lost="Rows and watermarks are one transaction: the next attempt leaves out what "
        "has arrived",
    ),
    info(
        "batch.extended",
        "Rows collide in a batch that ends inside a transaction. The task reads the batch again "
        "with the whole transaction (rows move between shards), which takes memory for the "
        "transaction",
        "reason",
    ),
    warning(
        "buckets.kept",
        "`writer.buckets` has changed, but the last run did not end in order. The task uses the "
        "former number until it has been stopped once",
        "reason",
        buckets="the number in use",
        wanted="the number in the task file",
        no_row_lost="The watermarks hold for the former number, which the task uses",
    ),
    warning(
        "rows.missing",
        "An UPDATE or DELETE did not find rows in the target",
        "target",
        rows="the number of rows",
        meaning="what this means",
        no_row_lost="The target is as the shard is now: the task has written a row that an UPDATE "
        "did not find, and a row to delete is not there. Another writer has changed the target, "
        "or a position was too early",
    ),
    info(
        "rows.filtered",
        "Expression filters left out changes of a shard since the last such record about it, at "
        "least a minute ago",
        "source member target",
        rows="the number of changes",
        rules="the names of the filters",
    ),
    warning(
        "rows.column-left-out",
        "Without coordination, a shard still writes a column that the target has dropped and "
        "added again for others. The task leaves out its values until the shard makes that "
        "change, which empties them there, too",
        "source member target reason",
        column="the column",
        no_row_lost="The rows arrive. The column of the target is newer than that of the shard, "
        "whose values go when the shard drops it, too. If the shard never does, these values are "
        "missing",
    ),
    info(
        "moved.looked-up",
        "The task has looked up, in all shards, tracked keys that the target lacks, and has put "
        "back the rows that a shard has",
        "target",
        keys="the number of keys",
        rows="the number of rows put back",
    ),
    info(
        "moved.later",
        "The task can't look up tracked keys now, for example because a schema change is not "
        "executed yet. It tries again",
        "target reason",
    ),
    info(
        "moved.restarting",
        "The task starts again from its saved state, to look up tracked keys",
    ),
    warning(
        "moved.shared",
        "Several shards have the same keys: rows move from one to another, or keys collide. The "
        "target has the row that was changed last. The task logs this when the number changes, "
        "and once a minute",
        "target",
        keys="the number of keys",
        examples="some keys with their shards",
        no_row_lost="One of the rows is on the target. The task tracks the keys, and puts the "
        "other shard's row there once the first is deleted",
    ),
    warning(
        "moved.too-many",
        "The task tracks so many keys that looking them up takes long. It logs this once, until "
        "there are fewer",
        keys="the number of keys",
        limit="the number from which the task warns",
        no_row_lost="The task tracks all keys and looks all of them up; it only takes longer",
    ),
)
"""Batches, rows and targets, in the order of the page."""

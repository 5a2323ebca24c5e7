"""Faults of the task, of its sources and of the full copy: what they mean, and what ends them."""

from __future__ import annotations

from replicator.events.log_event import fault

TASK_FAULTS = (
    fault(
        "server.refused",
        "target or source or task",
        "A server refuses the login or a statement of the task",
        "A password or a privilege has changed at the server. The message names the server and the "
        "account.",
        "Fix it at the server; `replicator check` shows what is needed. Then resume.",
        "If the task file has to change: change it, `stop`, then `run`.",
    ),
    fault(
        "spark.not-started",
        "task",
        "Spark can't be started",
        "Spark does not start with `spark.master` and `spark.conf`, or the host lacks memory.",
        "Correct the settings, `stop`, then `run`.",
        "Or free some memory, then resume.",
    ),
    fault(
        "spark.executors",
        "task",
        "The Spark cluster gives no executors, or they lack what they need",
        "The executors lack Python, its version, or packages; the message says what.",
        "Do what the message says ([A Spark cluster](../how-to/cluster.md)); `stop`, then `run`.",
    ),
    fault(
        "spark.failing",
        "task",
        "Spark failed run after run, with no progress in between",
        "Spark's workers or its JVM died in five runs in a row. Most often the machine lacks "
        "memory; its kernel log shows that.",
        "Give the machine more memory, then resume.",
        "Or set `writer: {batch-bytes: …}` to less; `stop`, then `run`.",
    ),
    fault(
        "task.lease-lost",
        "task",
        "Another process has taken over the task. This process runs it no longer",
        "The process was suspended or cut off from the target, and did not renew its lease. It has "
        "written nothing since. It ends with exit code 1, or stands by if it was started with "
        "`--standby`. The message names the other process.",
        "If the other process should run the task, do nothing.",
        "Otherwise `stop` it there, and `run` the task here.",
    ),
    fault(
        "task.leftovers",
        "task",
        "Some meta tables of the task are missing",
        "Some meta tables are missing while others have rows, or a copy is recorded without the"
        " checkpoint to follow from. Somebody dropped them, restored a part of them, or"
        " interrupted `remove`. A start from this state would lose or duplicate rows.",
        "`stop`, [`remove`](../how-to/move-backup-remove.md#remove-a-task), empty the targets, "
        "then `run`.",
        "Or restore what is missing from a backup of the same moment as the targets, then resume.",
    ),
    fault(
        "task.other-tables",
        "task",
        "A table with the name of a meta table has other columns",
        "Another program made the table (TiDB DM has a `<task>_onlineddl`, too), or another "
        "version of this one.",
        "If another program made it: set another `name` or `meta-schema` in the task file, "
        "`stop`, then `run`.",
        "If another version made it: go on with that version. Or drop the task's meta tables, "
        "empty the targets, and `run`.",
    ),
    fault(
        "task.other-sources",
        "task",
        "The meta tables belong to sources that are not in the task file",
        "None of the sources that are saved under the task's name is in the task file.",
        "Give the task another `name`, or the sources their former `source-id`; `stop`, then "
        "`run`.",
        "To forget the former task: `stop`, [`remove`](../how-to/move-backup-remove.md"
        "#remove-a-task), empty the targets, then `run`.",
    ),
    fault(
        "task.removed",
        "task",
        "Somebody removed the meta tables while the task ran. The process ends",
        "The process ends with exit code 1, and does not start over by itself.",
        "Empty the targets, then `run`.",
        "Or restore all meta tables from a backup of the same moment as the targets, then `run`.",
    ),
    fault(
        "task.unexpected",
        "task",
        "An executor failed twice with the same unexpected error",
        "There was no progress in between, so trying again does not help. The log has the "
        "traceback (`batch.spark-failed`, `copy.spark-failed`).",
        "If the installation is the cause, fix it, then resume.",
        "Otherwise report the error with its traceback. To go on without the table, leave it out "
        "(`block-allow-list`).",
    ),
    fault(
        "task.mode-changed",
        "task",
        "The `shard-mode` changed while schema changes of the shards are open",
        "The modes count schema changes differently. So a task takes another mode only if nothing "
        "is open and nothing will be read again, and `pessimistic` only if all shards of each "
        "target are alike.",
        "Restore the former mode. Let the task run until no lock is open, nothing is blocked, the "
        "lag is 0 and the shards are alike. Then `stop` it, change the mode, and `run` it.",
    ),
    fault(
        "task.routes-changed",
        "task",
        "The routes, or filters of statements, changed while schema changes of the shards are open",
        "`routes` or `block-allow-list` send a shard elsewhere than before, or (with coordination) "
        "`filters` apply to other statements than before. Meanwhile, schema changes of the source "
        "are open, or rows will be read again.",
        "Put the former rules back, let the task work until no lock is open, nothing is blocked "
        "and the lag is 0, `stop` it, and then change them.",
    ),
    fault(
        "task.rules-changed",
        "task",
        "The rows on the target were written under other rules: other routes, allow lists, "
        "mappings, extracted columns or expression filters",
        "The message names shards, rules and targets. The rows that are there would stay as they "
        "are, next to later rows under the new rules. [Change rules](../how-to/change-rules.md) "
        "explains the choice.",
        "Put the former rules back, then `run`.",
        "Or say what becomes of the rows: `run --on-changed-rules recopy` or `keep`.",
    ),
    fault(
        "target.same-table",
        "task",
        "The names of two targets differ only in case, and their server treats them as one table",
        "The target's server ignores the case of names (`lower_case_table_names` 1 or 2, TiDB),"
        " and the task would count the schema changes and rows of each separately.",
        "Spell both alike in `target-schema` and `target-table`. A table or database without a "
        "route keeps its name: give it a route (for a database, one without `table-pattern`). "
        "`stop`, then `run`.",
    ),
)

SOURCE_FAULTS = (
    fault(
        "source.no-start",
        "task",
        "The source has neither a checkpoint nor a position in the task file",
        "The message has the present end of the source's binlog.",
        "Give the instance its `meta:` in the task file; `stop`, then `run`.",
    ),
    fault(
        "source.check-failed",
        "source",
        "At a start, a check fails for a source that the task followed before",
        "The settings of the source or the privileges there have changed. The message has the "
        "findings.",
        "Do what the findings say, then resume: the task checks the source again.",
    ),
    fault(
        "source.changed",
        "source",
        "The source is another server than that of the checkpoint, or than before the connection "
        "was lost",
        "The server has another `server_id` or `server_uuid`. A position on one server means "
        "nothing on the other. With `enable-gtid: true` the task goes on by itself "
        "([Failover](failover.md)).",
        "Point the task at the former server, then resume.",
        "Or, where the new server has its GTIDs: set `enable-gtid: true`, `stop`, then `run`.",
        "Or copy again.",
    ),
    fault(
        "source.lacks-transactions",
        "source",
        "Another server has taken over a source, and lacks transactions that the task read from "
        "the former one",
        "The message lists their GTIDs. The server lost them, or applied them without logging them "
        "(`log_slave_updates`). Some may be on the target. If a replica is only still "
        "applying them, the task waits for it (`source.unavailable`).",
        "Point the task at the former server, then resume.",
        "Or apply the transactions, with their GTIDs, to the new server before anything else is "
        "written there, then resume.",
        "Or copy again.",
    ),
    fault(
        "source.other-order",
        "source",
        "Another server has taken over a source, and has the transactions in another order, or "
        "others among them",
        "A replica that may take over must keep the order of commits and get no other writes.",
        "Point the task at the former server, then resume.",
        "Or copy again.",
    ),
    fault(
        "source.failover-position-unknown",
        "source",
        "Another server has taken over a source, and it is not certain where a saved position is "
        "in its binlog",
        "Only a part of a transaction above 4 MiB was applied, or GTIDs were not known, for "
        "example of a source that was followed by file and position.",
        "Point the task at the former server, then resume. With `enable-gtid: true` the task "
        "learns the GTIDs of the saved position there.",
        "Or copy again.",
    ),
    fault(
        "source.failover-in-copy",
        "source",
        "Another server has taken over a source before its copy was complete",
        "It took over while the tables were copied (each connection that reads rows checks which "
        "server answers, so a short takeover counts, too), or before the task had followed the "
        "binlog to the end of the copy.",
        "Point the task at the former server, then resume.",
        "Or copy again.",
    ),
    fault(
        "source.name-case",
        "source",
        "The `lower_case_table_names` of a source has changed",
        "Statements write names of tables in the former way before the change, and in the new way "
        "after it.",
        "Set it back, then resume.",
        "To keep the new value: set the former one, let the task read to the end of the binlog, "
        "and `stop`. Then change the value, and start after the change.",
    ),
    fault(
        "source.reset",
        "source",
        "The binlog of the source is not the one that the task read before",
        "The last event that was read is no longer where it was, or the source does not know the "
        "GTIDs up to which the task read. Somebody reset the binlog (`RESET MASTER`, `RESET BINARY "
        "LOGS AND GTIDS`), the source lost its last transactions in a crash, or a server with the "
        "same `server_id` answers (MariaDB has no `server_uuid`).",
        "If another server answers: point the task at the former one, then resume.",
        "Otherwise the events in between are lost: copy again.",
    ),
    fault(
        "source.missed-ddl",
        "source",
        "A source is back in the task file, but the task decided schema changes without it",
        "Rows that the source wrote before these schema changes would be lost.",
        "Remove the source from the task file again.",
        "Or copy again.",
    ),
    fault(
        "source.purged",
        "source",
        "The source has purged the binlog that the task must read next",
        "The file is gone, or the position is not an event boundary. Keep binlogs for longer than "
        "the task may be stopped and than locks and faults stay open.",
        "Restore the files at the source, or point the source at a replica that has them.",
        "If the position is wrong: correct `meta:`.",
        "Otherwise copy again.",
    ),
    fault(
        "source.unreadable",
        "source",
        "The task can't read the binlog, or can't be certain what an event in it means",
        "The message says which of these cases it is:\n"
        "\n"
        "* The password or a privilege is wrong.\n"
        "* Two replicas use the same server id.\n"
        "* `LOAD DATA` is logged as a statement.\n"
        "* An event is unknown, or its checksum does not match.\n"
        "* Events are missing, repeated or out of order, twice at the same position.\n"
        "* The source has logged an incident.\n"
        "* An XA transaction was prepared before the task began to read, or the source no longer"
        " has it.\n"
        "* A transaction was rolled back in part.\n"
        "* A JSON value is logged in part.\n"
        "* An event is larger than `limits.largest-event`, or than its header says.",
        "Access and server ids: fix them at the server, then resume. If the task file has to "
        "change (a new password): `stop`, then `run`; `resume` does not read it again.",
        "A large event: raise `limits.largest-event` and the memory, `stop`, then `run`.",
        "An event that the task can't apply: make its change by hand on the target, and start"
        " after it.",
    ),
    fault(
        "source.no-binlog",
        "task",
        "A source that the task is to follow after the copy writes no binlog",
        "`task-mode: all` needs a binlog in ROW format.",
        "Turn the binlog on (`log_bin`), then resume.",
        "Or copy with `task-mode: full` while nothing writes to the shards.",
    ),
    fault(
        "member.not-copied",
        "target",
        "A replicated shard existed at the full copy, and the task did not copy it",
        "The account could not see it, or routes and allow lists were different then. Its older "
        "rows are not on the target; everything that the task read before this event is.",
        "Copy it by a separate task: [Add a shard](../how-to/add-a-shard.md).",
        "Or let the account see it, `stop`, [`remove`](../how-to/move-backup-remove.md"
        "#remove-a-task), empty the targets, then `run`.",
        "Or leave it out (`block-allow-list`), `stop`, then `run`.",
        "If it is empty: DROP and CREATE it again, then resume. If its rows are on the target "
        "already: `pause`, `schema set` with `--from-source`, then resume.",
    ),
)

COPY_FAULTS = (
    fault(
        "copy.duplicate",
        "target",
        "A row of a shard has a key that already exists in the target, and `on-duplicate-logical`"
        " is `error`",
        "The message names the target, the key and the shards that have it now; `where` has the "
        "key's columns ([values](faults-in-detail.md#which-row-a-fault-is-about)).",
        "Change or delete the row in the shard that is being copied; or delete the other one in "
        "its shard and on the target, since copied rows are not copied again. Then resume.",
        "If the target had rows before: `TRUNCATE TABLE` it, then resume. All its shards are "
        "copied again (`copy.target-emptied`).",
        "If rows may overwrite each other: set `on-duplicate-logical` to `replace` or `ignore`,"
        " `stop`, then `run`.",
    ),
    fault(
        "copy.target-has-rows",
        "target",
        "A target without a key has rows that are not of its copy",
        "The copy begins, and rows of an earlier copy would be on the target twice. Or a shard has "
        "dropped its primary key during the copy: the task has to copy the target again, and "
        "does not empty it, since another program has written rows to it.",
        "Empty the target, or move its rows elsewhere until the copy has finished. Then resume.",
    ),
    fault(
        "copy.refused",
        "target",
        "The task can't read or write a chunk",
        "The target refuses the chunk as it is, or the source does not let the task read it. "
        "The message has the words of the server.",
        "Make the target accept it, or grant what is missing. Then resume.",
    ),
    fault(
        "copy.no-room",
        "target",
        "A row to copy has a value that column mapping has no room for",
        "The value of the mapped column (`column-mappings`) is negative or not below 2^44; the "
        "bits above hold the number of the shard.",
        "Give the row another key in the shard, or delete it. Then resume.",
        "Or tell the shards apart by an extracted column in the key of the target, and copy again.",
    ),
    fault(
        "copy.shard-changed",
        "target",
        "A shard changed during its copy, so that the task can't know its former rows, and can't "
        "copy it again",
        "No statement in the binlog shows the change, the target has lost the key by which the "
        "rows are known, or nothing follows the copy. The message says which.",
        "If the target has lost its key: `TRUNCATE TABLE` it (the message has the statement), then "
        "resume. The task copies all its shards again.",
        "Otherwise undo the change, then resume; or finish it on all shards, and copy again.",
    ),
    fault(
        "copy.unfinished",
        "task",
        "The task is to follow a binlog, and the copy before it is not complete",
        "The task file has `task-mode: incremental`, and a full copy of the same task was begun, "
        "or shards of it are deferred.",
        "Set `task-mode: all`, `stop`, then `run`: the copy goes on.",
    ),
)

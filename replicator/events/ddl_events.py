"""Events of the log: schema changes."""

from __future__ import annotations

from replicator.events.log_event import LogEvent, fields_of

DDL_EVENTS = (
    LogEvent(
        "lock.item",
        "info",
        ("A shard has made a schema change. The task records it as item `version` of its target"),
        fields=fields_of(
            "source",
            "target",
            "member",
            "version",
            "statement",
            awaited="the shards that have not made it yet",
        ),
    ),
    LogEvent(
        "lock.conflict",
        "error",
        (
            "Two shards have made different statements as the same item. This target waits until"
            " the operator unlocks a lock"
        ),
        fields=fields_of(
            "target",
            "version",
            ours="a shard",
            our_statements="its statements",
            theirs="another shard",
            their_statements="its statements",
        ),
    ),
    LogEvent(
        "lock.open-long",
        "warning",
        "A lock has been open for an hour; logged again after each further hour",
        fields=fields_of(
            "target",
            "statement",
            "remedies",
            lock="the argument of `unlock-ddl-lock`",
            state="`waiting`, `conflict` or `resolving`",
            hours="how long, by the clock of the source that made the statement first",
            rows_held="row events that it holds, which are read again when it is resolved",
            missing="by source, the shards that have not made the statement",
        ),
        no_row_lost=(
            "The held rows are read again when the lock is resolved. Keep the binlogs until then; "
            "`source.purge-near` warns before a source purges them"
        ),
    ),
    LogEvent(
        "lock.decided",
        "info",
        (
            "All shards have reached the item, or the operator has unlocked it. The task "
            "executes or skips it next"
        ),
        fields=fields_of(
            "target",
            "version",
            "statement",
            owner="the source whose statement counts",
            unlocked="whether the operator unlocked it",
            skipped="whether the task skips it",
        ),
    ),
    LogEvent(
        "lock.resolved",
        "info",
        "The target has the item. Sources that held rows of it start again",
        fields=fields_of("target", "version"),
    ),
    LogEvent(
        "member.joined",
        "info",
        "A shard was created",
        fields=fields_of("source", "target", "member", "version"),
    ),
    LogEvent(
        "member.renamed",
        "info",
        "A shard was renamed",
        fields=fields_of("source", "target", member="the former name", to="the new name"),
    ),
    LogEvent(
        "member.moved",
        "info",
        "A changed route sends a shard to another target, or to none",
        fields=fields_of("source", move="the shard and its targets"),
    ),
    LogEvent(
        "task.other-mode",
        "info",
        "The task goes on with another `shard-mode`: nothing was open, and versions count from 0",
        fields=fields_of(former="the modes that the sources were saved with", mode="the new one"),
    ),
    LogEvent(
        "member.ahead",
        "warning",
        (
            "A shard was created with a structure that its target does not have yet. The task"
            " holds its rows until the target gets the structure by a DDL of other shards"
        ),
        fields=fields_of("source", "target", "member", differences="how the structures differ"),
        no_row_lost=(
            "The task holds its rows until the open lock is resolved. If the target still lacks"
            " the structure then, `ddl.create-differs` blocks the target"
        ),
    ),
    LogEvent(
        "member.unknown",
        "warning",
        (
            "The task reads rows of a shard that was dropped before the task first looked at the"
            " source. It counts as a shard of the target, and its row events must show its"
            " structure"
        ),
        fields=fields_of("source", "target", "member"),
        no_row_lost=(
            "The task reads its rows only if their events show the structure; otherwise "
            "`rows.structure-unknown` blocks the target"
        ),
    ),
    LogEvent(
        "ddl.open",
        "warning",
        (
            "A schema change of a shard conflicts with the structures of the "
            "others (`shard-mode: optimistic`). `replicator show-ddl-locks` shows the remedies"
        ),
        fields=fields_of("source", "target", "member", "statement", "reason"),
        no_row_lost=(
            "The task holds the rows of this shard after the statement, and reads them again "
            "when it is resolved"
        ),
    ),
    LogEvent(
        "ddl.no-join",
        "warning",
        (
            "A shard differs from the others at the start in columns for which no type fits the "
            "values of all (`shard-mode: optimistic`). The target follows the others"
        ),
        fields=fields_of("source", "target", "member", columns="the columns"),
        no_row_lost=(
            "A value that would change in the target's column is refused: `rows.no-plan` blocks "
            "the target"
        ),
    ),
    LogEvent(
        "ddl.taken",
        "info",
        (
            "The task accepts a schema change of a shard (`shard-mode: optimistic`). `statement`"
            " is what it executes on the target for it, empty where the target needs nothing"
        ),
        fields=fields_of("source", "target", "member", "statement"),
    ),
    LogEvent(
        "ddl.put-off",
        "info",
        (
            "After a crash, a schema change waits until other sources have applied again what was "
            "being applied then: it may change which part of the target a row belongs to"
        ),
        fields=fields_of("source", "target", "reason"),
    ),
    LogEvent(
        "ddl.stays-wider",
        "warning",
        (
            "The target refuses a type that is as narrow as those of its shards are by now"
            " (`shard-mode: optimistic`). It keeps the wider type, which fits the rows of all"
            " shards"
        ),
        fields=fields_of("source", "target", "member", "reason"),
        no_row_lost="The target accepts every row of its shards as it is",
    ),
    LogEvent(
        "ddl.other-old-rows",
        "warning",
        (
            "A shard adds a column whose default differs at each execution (`shard-mode:"
            " optimistic`). Existing rows have other values on the target than in the shard"
        ),
        fields=fields_of("source", "target", "member", "statement", "reason"),
        no_row_lost="Rows after the statement carry the values of the shard",
    ),
    LogEvent(
        "ddl.refused-again",
        "info",
        (
            "The target refuses a schema change that an earlier run began. The task decides again"
            " when it reads the statement again"
        ),
        fields=fields_of("target", "reason"),
    ),
    LogEvent(
        "lock.released",
        "info",
        (
            "The task no longer holds the rows of these shards. It reads the source again from"
            " its saved position"
        ),
        fields=fields_of(
            "source",
            "target",
            version="the number of this release; later rows of the shards have it",
            members="the shards whose open statements are resolved",
        ),
    ),
    LogEvent(
        "ddl.started",
        "info",
        "The task begins a schema change on the target",
        fields=fields_of("source", "target", "member", "version", "statement"),
    ),
    LogEvent(
        "ddl.executed",
        "info",
        "The target has executed the schema change",
        fields=fields_of("source", "target", "version"),
    ),
    LogEvent(
        "ddl.was-executed",
        "info",
        (
            "The target had executed the schema change before the last crash. The task does not "
            "execute it again"
        ),
        fields=fields_of("source", "target", "version"),
    ),
    LogEvent(
        "ddl.already-applied",
        "info",
        (
            "Without coordination, a shard makes a change that the target already has. The task"
            " does not execute it again"
        ),
        fields=fields_of(
            "source",
            "target",
            "member",
            "statement",
            first="the shard that made it first; empty if the task did not follow it then",
        ),
    ),
    LogEvent(
        "ddl.time-dependent",
        "warning",
        (
            "A shard adds a column whose default depends on the moment (`now()`). Existing rows "
            "get another value in the target than in their shards"
        ),
        fields=fields_of("target", "version", "statement", "reason"),
        no_row_lost=(
            "No row is lost, but values differ: in the new column, existing rows get the moment "
            "of the statement on the target, where each shard has another one. Later rows "
            "arrive exactly. To have the former values, too, set them from the shards, or use "
            "`binlog replace` with a column without such a default"
        ),
    ),
    LogEvent(
        "ddl.dropped-in-part",
        "info",
        (
            "A DROP TABLE of several tables failed at the source for one of them, and was logged"
            " all the same. The task found out which tables are left, and follows these"
        ),
        fields=fields_of("source", "statement", left="the tables that are still there"),
    ),
    LogEvent(
        "ddl.key-freed",
        "info",
        (
            "TiDB refuses a schema change because the target's primary key is a clustered one. The "
            "task has rebuilt the table with an ordinary key and copied its rows into that; then "
            "it executes the change"
        ),
        fields=fields_of("target"),
    ),
    LogEvent(
        "ddl.key-not-freed",
        "info",
        (
            "TiDB refused to rebuild the table with an ordinary key. The target is as it was, and"
            " the schema change is `ddl.refused`"
        ),
        fields=fields_of("target", reason="the error of the target"),
    ),
    LogEvent(
        "ddl.retry",
        "warning",
        (
            "A server that a schema change needs was unavailable. The task tries the schema change "
            "again"
        ),
        fields=fields_of(
            "target",
            "reason",
            times="since when, and when the next attempt is",
            seconds="the wait before the next attempt",
        ),
        no_row_lost=(
            "The write-ahead record shows whether the statement took effect; later rows wait"
        ),
    ),
    LogEvent(
        "ddl.single-changes",
        "info",
        (
            "The target refuses a schema change as one statement, whatever its rows are. The "
            "task executes its single changes one by one"
        ),
        fields=fields_of(
            "target", statements="the single changes", reason="the error of the target"
        ),
    ),
    LogEvent(
        "ddl.values-changed",
        "warning",
        (
            "A schema change has changed values of rows on the target. Strict mode turns most of"
            " these into errors. What remains is, for example, a DATETIME that loses its time"
            " when it becomes a DATE"
        ),
        fields=fields_of(
            "target", "statement", count="the number of warnings", warnings="the first of them"
        ),
        no_row_lost=(
            "No row is lost: the server of the shard has changed its values by the same "
            "statement. Where the two differ, the log has the warnings of the target"
        ),
    ),
    LogEvent(
        "ddl.filtered",
        "info",
        "A rule of `filters` leaves out a statement",
        fields=fields_of("source", "table", "statement", rule="the rule"),
    ),
    LogEvent(
        "ddl.not-executed",
        "warning",
        (
            "The task does not execute a DROP, TRUNCATE, DROP PARTITION or the like, because"
            " other shards share the target"
        ),
        fields=fields_of(
            "source",
            "target",
            "table",
            "position",
            "statement",
            "reason",
            kind="the kind of statement",
        ),
        no_row_lost=(
            "The statement would remove rows of other shards: the task removes none. The rows of "
            "the dropped or emptied shard stay; delete them if they are to go"
        ),
    ),
    LogEvent(
        "ddl.not-replicated",
        "debug",
        "A statement has no effect on the target",
        fields=fields_of("source", "statement"),
    ),
    LogEvent(
        "ddl.database-kept",
        "warning",
        (
            "The database of a shard was dropped, and the database of the target stays, with "
            "tables that are not the task's, or that its account can't see"
        ),
        fields=fields_of(
            "reason",
            target="the database",
            dropped="the tables of the task that were dropped",
            left="the tables that stay",
        ),
        no_row_lost=(
            "What is not the task's stays in the database; the tables of the dropped shards are"
            " gone. Drop the database by hand if you don't need it"
        ),
    ),
    LogEvent(
        "ddl.override",
        "warning",
        "The operator has given an override for this statement: the task skips it, replaces it,"
        " or executes other statements before it",
        fields=fields_of(
            "source",
            "position",
            "statement",
            action="`skip`, `replace` or `inject`",
            given="the statements of the operator",
        ),
        no_row_lost=(
            "The operator has decided what the task executes. Rows that then do not fit the "
            "target block it"
        ),
    ),
    LogEvent(
        "ddl.override-given",
        "info",
        "The operator has given an override for the statement at `position`",
        fields=fields_of(
            "source",
            "position",
            action="`skip`, `replace` or `inject`",
            given="the statements of the operator",
        ),
    ),
    LogEvent(
        "ddl.override-forgotten",
        "warning",
        (
            "Another server has taken over the source, and the task does not know where the"
            " statement at `position` of the former binlog is in the new one. It drops the"
            " override for it"
        ),
        fields=fields_of(
            "source",
            position="the place on the former server",
            action="`skip`, `replace` or `inject`",
            given="the statements of the operator",
        ),
        no_row_lost=(
            "The task has not read the statement yet. It carries out the statement as the shard "
            "has it, or asks the operator"
        ),
    ),
    LogEvent(
        "online-ddl.started",
        "info",
        "gh-ost or pt-online-schema-change has created a ghost table like the real one",
        fields=fields_of("source", "table", "statement"),
    ),
    LogEvent(
        "online-ddl.made",
        "info",
        (
            "gh-ost or pt-online-schema-change has created a ghost table from a column list instead"
            " of LIKE the real one"
        ),
        fields=fields_of("source", "table", "statement"),
    ),
    LogEvent(
        "online-ddl.changed",
        "info",
        "A statement has changed a ghost table",
        fields=fields_of("source", "table", "statement"),
    ),
    LogEvent(
        "online-ddl.ended",
        "info",
        "A table is no longer a ghost",
        fields=fields_of("source", "table", "statement"),
    ),
    LogEvent(
        "online-ddl.overtaken",
        "info",
        (
            "A statement has changed a table that has a ghost. If the ghost takes its place, "
            "that is a fault (`ddl.not-supported`)"
        ),
        fields=fields_of("source", "table", "statement"),
    ),
    LogEvent(
        "online-ddl.awaited",
        "info",
        (
            "A statement drops a table whose ghost takes its place next in the binlog. The task "
            "drops nothing"
        ),
        fields=fields_of("source", "table", "statement"),
    ),
    LogEvent(
        "online-ddl.exchanged",
        "info",
        "A ghost has taken the place of its shard",
        fields=fields_of(
            "source", "statement", replayed="the statements that the ghost went through"
        ),
    ),
    LogEvent(
        "online-ddl.derived",
        "info",
        (
            "A ghost table existed before the task began to read. The task derives the change "
            "from its structure and that of its shard"
        ),
        fields=fields_of("source", "table", statement="the derived statement"),
    ),
    LogEvent(
        "online-ddl.unclear",
        "warning",
        (
            "A ghost table existed before the task began to read, and the task can't derive "
            "what changed. If the ghost takes the place of its shard, that is a fault "
            "(`ddl.not-supported`)"
        ),
        fields=fields_of("source", "table", "reason"),
        no_row_lost=(
            "The rows of a ghost are those of its shard, which the task follows. If the ghost "
            "takes the place of the shard, the target is blocked before any later row"
        ),
    ),
    LogEvent(
        "online-ddl.left-out",
        "info",
        (
            "The task takes a table for one that gh-ost or pt-online-schema-change made beside "
            "a real one, and leaves out its rows"
        ),
        fields=fields_of("source", "table", real="the real table"),
    ),
    LogEvent(
        "schema.declared",
        "info",
        "The operator has declared the structure of a table",
        fields=fields_of("source", "table", since="the place from which it holds"),
    ),
    LogEvent(
        "schema.older-rows",
        "warning",
        (
            "The start lies before statements that may have changed these shards. The task "
            "reads earlier rows only if their events show the structure; otherwise it meets "
            "`rows.structure-unknown`"
        ),
        fields=fields_of("source", members="the shards"),
        no_row_lost=(
            "The task reads rows before the change only if their events show the structure; "
            "otherwise `rows.structure-unknown` blocks the target"
        ),
    ),
)
"""Schema changes, in the order of the page."""

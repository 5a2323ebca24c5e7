"""Events of the log: schema changes."""

from __future__ import annotations

from replicator.events.log_event import debug, error, info, warning

DDL_EVENTS = (
    info(
        "lock.item",
        "A shard has made a schema change. The task records it as item `version` of its target",
        "source target member version statement",
        awaited="the shards that have not made it yet",
    ),
    error(
        "lock.conflict",
        "Two shards have made different statements as the same item. This target waits until the "
        "operator unlocks a lock",
        "target version",
        ours="a shard",
        our_statements="its statements",
        theirs="another shard",
        their_statements="its statements",
    ),
    warning(
        "lock.open-long",
        "A lock has been open for an hour; logged again after each further hour",
        "target statement remedies",
        lock="the argument of `unlock-ddl-lock`",
        state="`waiting`, `conflict` or `resolving`",
        hours="how long, by the clock of the source that made the statement first",
        rows_held="row events that it holds, which are read again when it is resolved",
        missing="by source, the shards that have not made the statement",
        no_row_lost="The held rows are read again when the lock is resolved. Keep the binlogs "
        "until then; `source.purge-near` warns before a source purges them",
    ),
    info(
        "lock.decided",
        "All shards have reached the item, or the operator has unlocked it. The task executes or "
        "skips it next",
        "target version statement",
        owner="the source whose statement counts",
        unlocked="whether the operator unlocked it",
        skipped="whether the task skips it",
    ),
    info(
        "lock.resolved",
        "The target has the item. Sources that held rows of it start again",
        "target version",
    ),
    info(
        "member.joined",
        "A shard was created",
        "source target member version",
    ),
    info(
        "member.renamed",
        "A shard was renamed",
        "source target",
        member="the former name",
        to="the new name",
    ),
    info(
        "member.moved",
        "A changed route sends a shard to another target, or to none",
        "source",
        move="the shard and its targets",
    ),
    info(
        "task.other-mode",
        "The task goes on with another `shard-mode`: nothing was open, and versions count from 0",
        former="the modes that the sources were saved with",
        mode="the new one",
    ),
    warning(
        "member.ahead",
        "A shard was created with a structure that its target does not have yet. The task holds "
        "its rows until the target gets the structure by a DDL of other shards",
        "source target member",
        differences="how the structures differ",
        no_row_lost="The task holds its rows until the open lock is resolved. If the target still "
        "lacks the structure then, `ddl.create-differs` blocks the target",
    ),
    warning(
        "member.unknown",
        "The task reads rows of a shard that was dropped before the task first looked at the "
        "source. It counts as a shard of the target, and its row events must show its structure",
        "source target member",
        no_row_lost="The task reads its rows only if their events show the structure; otherwise "
        "`rows.structure-unknown` blocks the target",
    ),
    warning(
        "ddl.open",
        "A schema change of a shard conflicts with the structures of the others (`shard-mode: "
        "optimistic`). `replicator show-ddl-locks` shows the remedies",
        "source target member statement reason",
        no_row_lost="The task holds the rows of this shard after the statement, and reads them "
        "again when it is resolved",
    ),
    warning(
        "ddl.no-join",
        "A shard differs from the others at the start in columns for which no type fits the "
        "values of all (`shard-mode: optimistic`). The target follows the others",
        "source target member",
        columns="the columns",
        no_row_lost="A value that would change in the target's column is refused: `rows.no-plan` "
        "blocks the target",
    ),
    info(
        "ddl.taken",
        "The task accepts a schema change of a shard (`shard-mode: optimistic`). `statement` is "
        "what it executes on the target for it, empty where the target needs nothing",
        "source target member statement",
    ),
    info(
        "ddl.put-off",
        "After a crash, a schema change waits until other sources have applied again what was "
        "being applied then: it may change which part of the target a row belongs to",
        "source target reason",
    ),
    warning(
        "ddl.stays-wider",
        "The target's rows refuse a key or a type that all shards have by now (`shard-mode: "
        "optimistic`). The target stays as it is, which fits the rows of all shards; "
        "`replicator show-ddl-locks` has the remedies",
        "source target member reason",
        no_row_lost="The target accepts every row of its shards as it is",
    ),
    warning(
        "ddl.other-old-rows",
        "A shard adds a column whose default differs at each execution (`shard-mode: "
        "optimistic`). Existing rows have other values on the target than in the shard",
        "source target member statement reason",
        no_row_lost="Rows after the statement carry the values of the shard",
    ),
    info(
        "ddl.refused-again",
        "The target refuses a schema change that an earlier run began. The task decides again "
        "when it reads the statement again",
        "target reason",
    ),
    info(
        "lock.released",
        "The task no longer holds the rows of these shards. It reads the source again from its "
        "saved position",
        "source target",
        version="the number of this release; later rows of the shards have it",
        members="the shards whose open statements are resolved",
    ),
    info(
        "ddl.started",
        "The task begins a schema change on the target",
        "source target member version statement",
    ),
    info(
        "ddl.executed",
        "The target has executed the schema change",
        "source target version",
    ),
    info(
        "ddl.was-executed",
        "The target had executed the schema change before the last crash. The task does not "
        "execute it again",
        "source target version",
    ),
    info(
        "ddl.already-applied",
        "Without coordination, a shard makes a change that the target already has. The task does "
        "not execute it again",
        "source target member statement",
        first="the shard that made it first; empty if the task did not follow it then",
    ),
    warning(
        "ddl.time-dependent",
        "A shard adds a column whose default depends on the moment (`now()`). Existing rows get "
        "another value in the target than in their shards",
        "target version statement reason",
        no_row_lost="No row is lost, but values differ: in the new column, existing rows get the "
        "moment of the statement on the target, where each shard has another one. Later rows "
        "arrive exactly. To have the former values, too, set them from the shards, or use `binlog "
        "replace` with a column without such a default",
    ),
    info(
        "ddl.dropped-in-part",
        "A DROP TABLE of several tables failed at the source for one of them, and was logged all "
        "the same. The task found out which tables are left, and follows these",
        "source statement",
        left="the tables that are still there",
    ),
    info(
        "ddl.key-freed",
        "TiDB refuses a schema change because the target's primary key is a clustered one. The "
        "task has rebuilt the table with an ordinary key and copied its rows into that; then it "
        "executes the change",
        "target",
    ),
    info(
        "ddl.key-not-freed",
        "TiDB refused to rebuild the table with an ordinary key. The target is as it was, and the "
        "schema change is `ddl.refused`",
        "target",
        reason="the error of the target",
    ),
    warning(
        "ddl.retry",
        "A server that a schema change needs was unavailable. The task tries the schema change "
        "again",
        "target reason",
        times="since when, and when the next attempt is",
        seconds="the wait before the next attempt",
        no_row_lost="The write-ahead record shows whether the statement took effect; later rows "
        "wait",
    ),
    info(
        "ddl.single-changes",
        "The target refuses a schema change as one statement, whatever its rows are. The task "
        "executes its single changes one by one",
        "target",
        statements="the single changes",
        reason="the error of the target",
    ),
    warning(
        "ddl.values-changed",
        "A schema change has changed values of rows on the target. Strict mode turns most of "
        "these into errors. What remains is, for example, a DATETIME that loses its time when it "
        "becomes a DATE",
        "target statement",
        count="the number of warnings",
        warnings="the first of them",
        no_row_lost="No row is lost: the server of the shard has changed its values by the same "
        "statement. Where the two differ, the log has the warnings of the target",
    ),
    info(
        "ddl.filtered",
        "A rule of `filters` leaves out a statement",
        "source table statement",
        rule="the rule",
    ),
    warning(
        "ddl.not-executed",
        "The task does not execute a DROP, TRUNCATE, DROP PARTITION or the like, because other "
        "shards share the target",
        "source target table position statement reason",
        kind="the kind of statement",
        no_row_lost="The statement would remove rows of other shards: the task removes none. The "
        "rows of the dropped or emptied shard stay; delete them if they are to go",
    ),
    debug(
        "ddl.not-replicated",
        "A statement has no effect on the target",
        "source statement",
    ),
    warning(
        "ddl.database-kept",
        "The database of a shard was dropped, and the database of the target stays, with tables "
        "that are not the task's, or that its account can't see",
        "reason",
        target="the database",
        dropped="the tables of the task that were dropped",
        left="the tables that stay",
        no_row_lost="What is not the task's stays in the database; the tables of the dropped "
        "shards are gone. Drop the database by hand if you don't need it",
    ),
    warning(
        "ddl.override",
        "The operator has given an override for this statement: the task skips it, replaces it, "
        "or executes other statements before it",
        "source position statement",
        action="`skip`, `replace` or `inject`",
        given="the statements of the operator",
        no_row_lost="The operator has decided what the task executes. Rows that then do not fit "
        "the target block it",
    ),
    info(
        "ddl.override-given",
        "The operator has given an override for the statement at `position`",
        "source position",
        action="`skip`, `replace` or `inject`",
        given="the statements of the operator",
    ),
    warning(
        "ddl.override-forgotten",
        "Another server has taken over the source, and the task does not know where the statement "
        "at `position` of the former binlog is in the new one. It drops the override for it",
        "source",
        position="the place on the former server",
        action="`skip`, `replace` or `inject`",
        given="the statements of the operator",
        no_row_lost="The task has not read the statement yet. It carries out the statement as the "
        "shard has it, or asks the operator",
    ),
    info(
        "online-ddl.started",
        "gh-ost or pt-online-schema-change has created a ghost table like the real one",
        "source table statement",
    ),
    info(
        "online-ddl.made",
        "gh-ost or pt-online-schema-change has created a ghost table from a column list instead "
        "of LIKE the real one",
        "source table statement",
    ),
    info(
        "online-ddl.changed",
        "A statement has changed a ghost table",
        "source table statement",
    ),
    info(
        "online-ddl.ended",
        "A table is no longer a ghost",
        "source table statement",
    ),
    info(
        "online-ddl.overtaken",
        "A statement has changed a table that has a ghost. If the ghost takes its place, that is "
        "a fault (`ddl.not-supported`)",
        "source table statement",
    ),
    info(
        "online-ddl.awaited",
        "A statement drops a table whose ghost takes its place next in the binlog. The task drops "
        "nothing",
        "source table statement",
    ),
    info(
        "online-ddl.exchanged",
        "A ghost has taken the place of its shard",
        "source statement",
        replayed="the statements that the ghost went through",
    ),
    info(
        "online-ddl.derived",
        "A ghost table existed before the task began to read. The task derives the change from "
        "its structure and that of its shard",
        "source table",
        statement="the derived statement",
    ),
    warning(
        "online-ddl.unclear",
        "A ghost table existed before the task began to read, and the task can't derive what "
        "changed. If the ghost takes the place of its shard, that is a fault (`ddl.not-supported`)",
        "source table reason",
        no_row_lost="The rows of a ghost are those of its shard, which the task follows. If the "
        "ghost takes the place of the shard, the target is blocked before any later row",
    ),
    info(
        "online-ddl.left-out",
        "The task takes a table for one that gh-ost or pt-online-schema-change made beside a real "
        "one, and leaves out its rows",
        "source table",
        real="the real table",
    ),
    info(
        "schema.declared",
        "The operator has declared the structure of a table",
        "source table",
        since="the place from which it holds",
    ),
    warning(
        "schema.older-rows",
        "The start lies before statements that may have changed these shards. The task reads "
        "earlier rows only if their events show the structure; otherwise it meets "
        "`rows.structure-unknown`",
        "source",
        members="the shards",
        no_row_lost="The task reads rows before the change only if their events show the "
        "structure; otherwise `rows.structure-unknown` blocks the target",
    ),
)
"""Schema changes, in the order of the page."""

"""Faults of rows, targets and schema changes: what they mean, and what ends them."""

from __future__ import annotations

from replicator.events.log_event import fault

ROW_FAULTS = (
    fault(
        "rows.duplicate",
        "target",
        "Two rows have the same key in the target",
        "The message names the shards as far as the task knows them; `where` has the columns of "
        "the key and the positions of the row events.",
        "Delete or change one of the two rows in its shard, then resume. This helps if the change "
        "gets into the same batch.",
        "If it does not: delete the row on the target, resume, and correct the target when both "
        "changes have been applied.",
        "If rows may overwrite one another: set `safe-mode: true`.",
        "If the message names a lock: the row may have moved from a shard whose deletion waits"
        " for the lock. `stop`, set `safe-mode: true`, and `run` until the lock is resolved and"
        " the lag is 0. The task tracks these keys, and puts back what the deletion removes."
        " Don't delete the row on the target: the deletion that waits would then remove the new"
        " row for good. The same helps after a lock is resolved, if only one of the shards has the"
        " row.",
    ),
    fault(
        "rows.refused",
        "target",
        "The target refuses a row",
        "A value does not fit, a privilege is missing, or a trigger refuses the row. The message "
        "has the words of the server.",
        "Change the target so that it accepts the row, then resume.",
    ),
    fault(
        "rows.undecodable",
        "target",
        "The task can't read a row event",
        "For example, some session has a `binlog_row_image` other than FULL. The event stays in "
        "the binlog, and rows of the same batch before it may be missing on the target, so a start "
        "after the event would lose them.",
        "Fix the cause at the source, then copy again.",
    ),
    fault(
        "rows.no-room",
        "target",
        "A row event has a value that column mapping has no room for",
        "The value of the mapped column is negative or not below 2^44. The event stays in the "
        "binlog, and rows of the same batch before it may be missing on the target.",
        "Give the row another value in the shard, or use an extracted column in the key instead"
        " of the mapping. Then copy again.",
    ),
    fault(
        "rows.unfiltered",
        "target",
        "An expression filter has no result for a row, for example because a BIGINT is out of"
        " range",
        "The source itself would give an error, for example where it subtracts from an unsigned"
        " column.",
        "Write the expression so that it has a result for this row, too: `u > 5 AND u - 5 > 3`."
        " `stop`, then `run --on-changed-rules keep` ([Change rules](../how-to/change-rules.md)).",
    ),
    fault(
        "rows.filter-unfit",
        "target",
        "An expression filter does not fit the table of the rows",
        "The table lacks a column that the filter names; or the column has a type on which the "
        "filter has no exact answer; or its collation is not known, since a schema change made the "
        "column, the target lacks collations of the source, and row events don't contain them. The "
        "message names the place in the expression.",
        "Change the rule in the task file, `stop`, then `run --on-changed-rules keep` "
        "([Change rules](../how-to/change-rules.md)).",
    ),
    fault(
        "rows.no-plan",
        "target or task",
        "The structures of shard and target do not fit each other",
        "The target lacks a column, the values of the shard can't be converted to a type of the "
        "target (the message says why), or somebody changed the shard unseen (`sql_log_bin=0`, or "
        "a start at a position before the table existed). Or the name of a shard does not suit a "
        "rule about columns (`extract-table`, `column-mappings`).",
        "Make the target fit, then resume. Where a SET or another type differs, the message has "
        "the statement that gives the target the values of both.",
        "If a rule is wrong: correct it, and start the task again.",
        "If the shard was changed unseen: `schema set` "
        "([The structure of rows](faults-in-detail.md#the-structure-of-rows)); or copy again.",
    ),
    fault(
        "rows.structure-unknown",
        "target",
        "The structure of rows is not certain, and their events do not contain it",
        "`binlog_row_metadata` is not FULL, and: the target's server could not try out a DDL of "
        "the shard; the shard was made LIKE a table that is not replicated; it was dropped before "
        "the task first looked; or the start lies before a later change. The message says which.",
        "Declare the structure with `schema set` ([The structure of"
        " rows](faults-in-detail.md#the-structure-of-rows)).",
        "Otherwise copy again. With `binlog_row_metadata=FULL` at the source, later row events"
        " have their structure with them.",
    ),
    fault(
        "rows.moved-unknown",
        "target",
        "The task can't look up tracked keys, because the key of the target has changed",
        "The key was changed while the task tracked keys that several shards may have. Rows that "
        "moved between shards may be missing.",
        "Copy again.",
    ),
    fault(
        "rows.recreated-column",
        "target",
        "Without coordination, a shard has written to a column whose name the target has since "
        "given to another column",
        "`shard-mode` is empty, and the shard has not made the change yet that its target has: a "
        "column was renamed, or a column of the key was dropped and added again.",
        "For rows that are written already: make the change on the shard, and copy again.",
        "To avoid it: let no shard write between the change of the first shard and that of the "
        "last.",
    ),
    fault(
        "rows.cascade-in-safe-mode",
        "target",
        "During the copy or in safe mode, a row was deleted, or its key changed, and foreign keys"
        " with an action refer to it",
        "The foreign keys of the shard acted on rows that the task may have copied before or after "
        "that.",
        "Copy again without `safe-mode: true`, while nothing deletes rows of parent tables or"
        " changes their keys. `SET SESSION foreign_key_checks=0` lets you TRUNCATE a parent"
        " table.",
    ),
    fault(
        "target.missing",
        "target",
        "A target table does not exist",
        "Somebody dropped it, or the task follows binlogs without a full copy, which would have"
        " created it.",
        "Create it (the message has the statement), then resume.",
    ),
    fault(
        "target.changed-by-others",
        "target",
        "Something on the target changes rows without a change in a shard",
        "A trigger of the target, an event that names it, a TTL of TiDB, or a foreign key with an"
        " action. Each start looks for these, and a running task does so every minute. It does"
        " not notice what they change before that.",
        "Drop what the message names, then resume. `replicator compare` shows the rows that were "
        "changed.",
        "If it changes nothing that comes from the shards: name the check in "
        "`ignore-checking-items`, `stop`, then `run`.",
    ),
    fault(
        "target.not-transactional",
        "target",
        "The storage engine of a target can't roll back",
        "After a lost connection, rows could be duplicated or missing.",
        "`ALTER TABLE … ENGINE=InnoDB` on the target, then resume.",
    ),
    fault(
        "target.not-created",
        "target",
        "The task can't create a target like its shards",
        "The server refuses the statement in the message, a view has the name, the storage engine "
        "of the shard may have its rows elsewhere, or the target lacks a collation that keeps the "
        "keys of the shards apart.",
        "Create the table by hand, with columns and keys that fit the rows of the shards; then "
        "resume.",
        "Or remove what the message names, then resume.",
    ),
    fault(
        "target.keys-differ",
        "target",
        "Foreign keys change rows of a shard without logging it, and the target can't make the "
        "same changes; or the shard lost such keys while the task was stopped",
        "The target or a shard no longer has the keys that the task followed, or the task file no "
        "longer lets the target follow them.",
        "Correct what the message names (it has the statement where the target lacks a key), "
        "then resume.",
        "Or, if the application changes the rows of the child itself: set `ignore-checking-items: "
        "[foreign_keys]`.",
    ),
    fault(
        "target.locked",
        "target",
        "Another session has locked a target. The task sets the target aside, and tries it again "
        "by itself",
        "The session holds locks on rows, or uses the table while its structure is to change, and "
        "has not released them in time. The data is not at fault, so the target goes on by itself "
        "([What recovers by itself](what-needs-nobody.md)).",
        "Wait.",
        "Or end that session (the message says where to look) and resume: the task then tries at "
        "once.",
        level="warning",
        no_row_lost="The task holds the rows of the target, and later reads them again",
    ),
)

DDL_FAULTS = (
    fault(
        "ddl.forbidden",
        "source or target",
        "A rule of `filters` demands an error at this statement",
        "The rule has `action: Error`.",
        "`binlog skip` or `binlog replace`.",
        "Or change the rule in the task file, `stop`, then `run`.",
    ),
    fault(
        "ddl.not-supported",
        "source or target",
        "The task can't apply a schema change",
        "The message says which of these cases it is:\n\n"
        "* DML is logged as a statement, because a session has another `binlog_format` than ROW. "
        "This counts even for a table that is not replicated, if the statement may have written to "
        "other tables ([why](../how-to/prepare-servers.md#statements-instead-of-rows)).\n"
        "* `CREATE TABLE … SELECT` runs in a session without `binlog_format=ROW`.\n"
        "* A partition is exchanged with a table. (`CONVERT PARTITION … TO TABLE` into a table "
        "that is not replicated is no fault: it counts as DROP PARTITION.)\n"
        "* A tablespace is imported.\n"
        "* The table has an engine that may keep its rows elsewhere: FEDERATED, CONNECT, SPIDER, "
        "BLACKHOLE, MERGE, or an unknown one.\n"
        "* A MERGE table is replicated, or contains tables that are.\n"
        "* A table that is not replicated gets the name of a replicated one.\n"
        "* One ALTER contains both RENAME and other changes.\n"
        "* With `shard-mode: pessimistic`, a table is created as a shard of a target that [foreign "
        "keys tie](../how-to/prepare-servers.md#foreign-keys-of-the-shards) to others.",
        "Make the statement's change by hand on the target, and `binlog skip` it; or `binlog"
        " replace` it.",
        "Or do it by hand and start after it: the message has the `meta:`.",
    ),
    fault(
        "ddl.several-tables",
        "target",
        "A statement changes several tables of one target",
        "With `shard-mode: pessimistic`, one RENAME renames several shards of the target. With "
        "`optimistic`, one statement makes several kinds of changes to shards of the target: for "
        "example, it renames one shard and moves another one to a different target.",
        "`binlog replace` it with several statements. Each renames one table, to a name that is "
        "free at that point and that is routed to the same target.",
    ),
    fault(
        "ddl.move-in",
        "target",
        "A rename would move a shard to another target",
        'The rows of the shard would have to move between targets. With `shard-mode: ""` the '
        "task renames the whole target where it can. It can't in these cases:\n\n"
        "* The former or the new target has shards that the statement does not move.\n"
        "* The statement moves the shards of one target to different targets.\n"
        "* One of several shards has not made all schema changes of its target yet.",
        "When all rows that the shard had before are on its former target (no lock holds any): "
        "move them by hand to the new one, and `binlog skip`. The shard belongs there "
        "from then on. If you don't move the rows, later changes of them find no row.",
    ),
    fault(
        "ddl.history",
        "target",
        "A DDL of a shard differs from the one that the target executed instead of it",
        "Another shard's statement was executed under the same number.",
        "`binlog skip`: the statement counts as the executed one.",
    ),
    fault(
        "ddl.create-differs",
        "target",
        "A shard is created with a structure that neither its target nor the other shards have or "
        "had",
        "Or, without coordination, a table that does not fit the target replaces one of several"
        " shards (CREATE OR REPLACE). The message says where they differ. Resume if a DDL of"
        " another shard, still to be read, makes this change.",
        "To keep the structure: make the target fit and `binlog skip`; the shard then joins as it "
        "is. Or `binlog replace` with the ALTER that makes the other shards like it, and run that "
        "ALTER on them: it is a schema change that waits for all shards.",
        "To give the shard the structure of the others: drop it, create it like them, and `binlog "
        "skip` the first CREATE, which stays in the binlog. Rows that it got before must fit the "
        "target by column name; give the target their columns until these rows have been applied.",
        "If the message says that a structure is not certain (a table made LIKE one that is not "
        "replicated): `binlog skip`, too, and `schema set` when its first rows come "
        "(`rows.structure-unknown`).",
    ),
    fault(
        "ddl.computed",
        "target",
        "A shard turns a plain column into a generated one, but another shard stores values in it",
        "The target would replace these values with computed ones.",
        "`binlog skip`: the target keeps a plain column, with the values of all shards, computed"
        " or not, until the last shard has made the change.",
    ),
    fault(
        "ddl.filtered-column",
        "target",
        "A statement changes a column of an expression filter, so that the filter may judge "
        "earlier rows differently",
        "The column gets another type or collation, or is dropped and added again, and an "
        "`insert-value-expr` uses it. A statement that only widens it is no fault.",
        "Correct the target by hand: add the rows of this shard that pass the filter now, and"
        " delete those that no longer pass. Then `binlog replace` it with the same statement"
        " (`binlog skip` if an event filter leaves it out).",
        "If the task copies: put the expression into brackets in the task file, `stop`, then `run "
        "--on-changed-rules recopy`.",
    ),
    fault(
        "ddl.other-values",
        "target",
        "A shard adds a column with another default or formula than that of the target, without "
        "coordination or after an unlock; or its rows are in a column that the target created "
        "again",
        "Older rows of the shard have other values than on the target. This is also the fault if "
        "one statement gives the rows of two shards different defaults (a TIMESTAMP in different "
        "time zones); if, after an unlock, a shard drops or renames a column, and another "
        "column of the target has that name by now; or if a shard converts a column as others did "
        "before, and the target has converted it again since.",
        "Give the shard's rows on the target the values that they have in the shard, and `binlog "
        "skip`.",
        "If the formulas differ: the target can have only one. Change it in the shard, or leave "
        "the column out of the target.",
    ),
    fault(
        "ddl.strict",
        "task",
        "A schema change of a shard conflicts with the structures of the other shards, and the "
        "task file has `strict-optimistic-shard-mode: true`",
        "For example, the shard renames a column, converts its type, or adds it with another "
        "default than another shard. The message gives the reason. Without the strict mode the "
        "task would hold only this shard.",
        "Remove `strict-optimistic-shard-mode` from the task file, `stop`, then `run`. The task "
        "then holds only this shard, and `replicator show-ddl-locks` shows how to resolve the "
        "statement.",
        "Or `binlog skip` if the target needs no change for the shard's rows: it converts their "
        "values, and older rows stay as they are. `binlog replace` it with what the rows need, "
        "for example `ADD COLUMN` for a renamed column. Then resume.",
    ),
    fault(
        "ddl.unclear",
        "target",
        "Without coordination, a shard makes a change that the target may already have made by a"
        " different statement",
        "The statement drops, renames or converts a column, and the target's column is newer than "
        "the shard's, or differs from it. The message names the change that the shard has not "
        "made.",
        "If the target has already made the change, or must not make it: `binlog skip`.",
        "If it is a further change: `binlog replace` it with the same statement.",
    ),
    fault(
        "ddl.refused",
        "target",
        "The target refused a schema change",
        "Or it can't execute a statement as a whole, and refused one of its single changes; the "
        "message says which ones it executed. If the error only says that the target already has "
        "the change, and it has, there is no fault.",
        "Remove what the message names, then resume: the task tries the statement again, or goes "
        "on with what was not executed.",
        "Or `binlog skip`, `replace` or `inject`, then resume. What was executed stays.",
    ),
    fault(
        "ddl.renumbers",
        "target",
        "An AUTO_INCREMENT column would renumber the rows of the target",
        "A statement adds or modifies a column with AUTO_INCREMENT, and the rows of the target "
        "would get other numbers than in their shards.",
        "Make the change by hand on the target without AUTO_INCREMENT (a new column must allow"
        " NULL), give the rows the numbers that they have in their shards after the statement,"
        ' and `binlog skip`. With `shard-mode: ""`, each further shard then causes'
        " `ddl.other-values`: `binlog skip` again.",
        "Or copy again.",
    ),
    fault(
        "ddl.nondeterministic-default",
        "target",
        "A new column would get other values in the target than in the shards (`uuid()`)",
        "The default has another value at each execution (`uuid()`, `rand()`, `user()` …), and"
        ' the target has rows; or a further shard adds the column, with `shard-mode: ""` or after'
        " an unlock.",
        "Add the column to the target by hand, without this default and allowing NULL; "
        "give the rows the values of their shards, and `binlog skip`. In a target without "
        "a key, rows that were changed since can't be found: copy again.",
        "If the values of older rows don't matter: `binlog replace` it with the same statement, or "
        "`skip` if the target has the column.",
    ),
    fault(
        "ddl.time-zone",
        "target",
        "A schema change depends on the time zone of the source, which the task can't know",
        "The statement ran in the time zone of the source's host, whose offset changes over the "
        "year, and servers don't show its rules. Its effect depends on it (TIMESTAMP, DATETIME, "
        "now() …).",
        "Name it in the task file, for example `timezone: Europe/Berlin` (the target then needs "
        "its time zone tables). `stop`, then `run`.",
    ),
)

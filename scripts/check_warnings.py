"""The checks that can end in a warning, and why none of these costs a row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckWarning:
    """A check by its name: what it warns of, and why no row is lost by that."""

    check: str
    finding: str
    no_row_lost: str


CHECK_WARNINGS = (
    CheckWarning(
        "version",
        "the task does not know this version",
        "an event of an unknown server that the task can't read is a fault; the task never guesses",
    ),
    CheckWarning(
        "binlog_checksum",
        "the source writes events without a checksum (`binlog_checksum` is not CRC32)",
        "the task applies what the source sends. A damaged event that doesn't fit its format "
        "is `source.unreadable`. No replica can notice an event whose values alone have "
        "changed: set CRC32",
    ),
    CheckWarning(
        "binlog_expire",
        "the source keeps its binlogs for a short time only",
        "`source.purged` blocks the source if it purges a binlog that the task needs",
    ),
    CheckWarning(
        "source_cluster",
        "the nodes of a Galera cluster number their transactions on their own",
        "a position means nothing on another node: the task reports a fault instead of continuing"
        " there",
    ),
    CheckWarning(
        "server_id",
        "the check can't see whether the id is free, or a reader, perhaps the task itself, has it",
        "two readers with the same id disconnect each other, and each continues where it was",
    ),
    CheckWarning(
        "meta_position",
        "the check can't see whether the start position exists",
        "`source.purged` blocks the source if the position does not exist",
    ),
    CheckWarning(
        "routes",
        "a route matches no table",
        "the same as for `route.unused`",
    ),
    CheckWarning(
        "target_privilege",
        "the target refuses something in a schema that no table goes to yet, or the check "
        "could not drop its own table",
        "a write that the target refuses is a fault",
    ),
    CheckWarning(
        "hidden_tables",
        "routes or block-allow-list name or match schemas that the account could not see if "
        "they existed. Before a full copy, the check fails for a schema that the account sees "
        "in part, or can't see although a rule names it without a pattern",
        "look at this one: only the server knows whether such a table exists. A table that "
        "gets rows later blocks its target (`member.not-copied`). A table that exists and "
        "never gets rows again is missing on the target",
    ),
    CheckWarning(
        "read_only",
        "the target is read-only for accounts without special rights",
        "a write that the target refuses is a fault",
    ),
    CheckWarning(
        "target_cluster",
        "replicas of the target don't get what the task writes, or its address leads to several"
        " nodes of a Galera cluster",
        "the target itself gets all rows. The task notices if a node that lags has less than it"
        " has written (`target.lost-commits`), and reads the rows again",
    ),
    CheckWarning(
        "transaction_size",
        "a limit of the target for the size of a transaction is low",
        "the task writes a batch in several transactions (`batch.cut`). If that can't be done, the"
        " refusal is `rows.refused` or `copy.refused`",
    ),
    CheckWarning(
        "local_infile",
        "the task writes rows by statements instead of `LOAD DATA`",
        "the same rows arrive, more slowly",
    ),
    CheckWarning(
        "max_allowed_packet",
        "the limit of the target is small",
        "a row that the target refuses is `rows.refused`",
    ),
    CheckWarning(
        "target_rows",
        "a target has rows before the full copy into it",
        "these rows stay. `on-duplicate-logical` decides about a copied row with the same "
        "key: by default it blocks the target",
    ),
    CheckWarning(
        "table_schema",
        "the target is missing, or lacks what a later statement may add, a collation of the"
        " shard, or a column that the shard computes",
        "rows that don't fit are `rows.no-plan`, a missing target is `target.missing`. A "
        "computed value follows from the other columns, or is the time of a versioned row. "
        "The collation that the target has instead distinguishes all texts that the shards "
        "distinguish",
    ),
    CheckWarning(
        "schema_of_shard_tables",
        "the shards differ, and the task is not pessimistic, or later statements may "
        "make them equal",
        "the task matches rows by column name. A column that the target lacks is "
        "`rows.no-plan`; a column that the shard lacks gets the target's default",
    ),
    CheckWarning(
        "auto_increment_ID",
        "several shards may generate the same keys",
        "the second row with a key is `rows.duplicate` or `copy.duplicate`",
    ),
    CheckWarning(
        "key_collisions",
        "the check could not read the values of a key in some shard",
        "the second row with a key is `rows.duplicate` or `copy.duplicate`",
    ),
    CheckWarning(
        "expression_filters",
        "a filter does not fit its table as it is now, or names a table that is not replicated",
        "the first rows may have another structure. The task tries the filter with that "
        "structure; if it does not fit, `rows.filter-unfit` blocks the target",
    ),
    CheckWarning(
        "foreign_keys",
        "the copy creates the target without those foreign keys of the shards that have no action",
        "the source has checked the rows already",
    ),
    CheckWarning(
        "storage_engine",
        "the engine of a shard has no consistent snapshots",
        "if the table has a key, the binlog corrects what changed during the copy; otherwise "
        "the task locks the table while it reads. The check fails for a target that can't "
        "roll back",
    ),
    CheckWarning(
        "system_versioning",
        "the target does not get the history of system-versioned shards",
        "the current rows arrive",
    ),
    CheckWarning(
        "target_keys",
        "the target has no key",
        "the task finds rows by all their columns, and counts duplicates: exact, but slow",
    ),
    CheckWarning(
        "target_triggers",
        "the account can't see the triggers in the schema of a target",
        "grant TRIGGER, or look for yourself: a trigger that changes rows makes the target"
        " differ from its shards, and the task can't notice. The check fails for triggers"
        " that it sees",
    ),
    CheckWarning(
        "target_events",
        "the account can't see the events in the schema of a target",
        "grant EVENT, or look for yourself, as for triggers",
    ),
    CheckWarning(
        "ignore-checking-items",
        "no check has this name",
        "the name leaves nothing out",
    ),
)
"""All of them, in the order of the page."""

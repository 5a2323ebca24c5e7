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
        "a version whose name is not understood",
        (
            "what an unknown server writes is not taken for something else: an unknown event is "
            "a fault"
        ),
    ),
    CheckWarning(
        "binlog_checksum",
        "the source writes events without a checksum (`binlog_checksum` is not CRC32)",
        (
            "what the source sends is applied. A damaged event that doesn't fit its format is "
            "`source.unreadable`; one that has changed values only can't be told from a sound "
            "one, by any replica: set CRC32"
        ),
    ),
    CheckWarning(
        "binlog_expire",
        "binlogs are kept for a short time",
        "a purged one that is needed is `source.purged`",
    ),
    CheckWarning(
        "server_id",
        "whether the id is free can't be seen, or a reader that may be our own has it",
        "two readers with one id cut each other off, and both go on where they were",
    ),
    CheckWarning(
        "meta_position",
        "whether the start is there can't be seen",
        "reading from a place that is not there is `source.purged`",
    ),
    CheckWarning(
        "routes",
        "a route matches no table",
        "as `route.unused`",
    ),
    CheckWarning(
        "target_privilege",
        (
            "something is refused in a schema that no table goes to yet; or the check could not "
            "remove a table of its own"
        ),
        "a write that is refused is a fault",
    ),
    CheckWarning(
        "hidden_tables",
        (
            "routes or block-allow-list name a schema, or match schemas, that the user could "
            "not see if they were there. Before a full copy, a schema that is seen in part, or "
            "that is named without a pattern and can't be seen, fails"
        ),
        (
            "nobody but the server knows whether there is such a table. One that is written to "
            "later blocks its source (`member.not-copied`); one that is there and never written "
            "to is missing on the target: so look at this one"
        ),
    ),
    CheckWarning(
        "read_only",
        "the target is read-only for others",
        "a write that is refused is a fault",
    ),
    CheckWarning(
        "local_infile",
        "rows are written by statements",
        "slower, the same rows",
    ),
    CheckWarning(
        "max_allowed_packet",
        "it is small",
        "a row that the target does not take is `rows.refused`",
    ),
    CheckWarning(
        "target_rows",
        "a target has rows before the full copy into it",
        (
            "what is there stays, and a copied row with the same key is handled by "
            "`on-duplicate-logical`: by default it blocks the target"
        ),
    ),
    CheckWarning(
        "table_schema",
        (
            "the target is missing, or lacks what a later statement may bring; or it lacks a "
            "shard's collation, or a column that the shard computes"
        ),
        (
            "rows that don't fit are `rows.no-plan`, without a target `target.missing`. What is "
            "computed follows from the other columns, or is the time of a versioned row. The "
            "collation in place tells apart all texts that the shards tell apart"
        ),
    ),
    CheckWarning(
        "schema_of_shard_tables",
        "shards differ, without coordination or before a later statement",
        (
            "rows are matched by column name: a column that the target lacks is `rows.no-plan`, "
            "one that the shard lacks keeps the target's default"
        ),
    ),
    CheckWarning(
        "auto_increment_ID",
        "shards may give the same keys",
        "the second row of a key is `rows.duplicate` or `copy.duplicate`",
    ),
    CheckWarning(
        "key_collisions",
        "a shard's values of a key of the target could not be looked at",
        "the second row of a key is `rows.duplicate` or `copy.duplicate`",
    ),
    CheckWarning(
        "expression_filters",
        "a filter does not fit its table as it is now, or names one that is not replicated",
        (
            "the rows that are read first may have another structure: it is tried anew with "
            "theirs, and where it does not fit it is `rows.filter-unfit`"
        ),
    ),
    CheckWarning(
        "foreign_keys",
        "the copy makes the target without them",
        (
            "rows are not checked by the target; they were at the source. Keys that change rows "
            "unlogged fail"
        ),
    ),
    CheckWarning(
        "storage_engine",
        "a source's table has no snapshots",
        (
            "with a key the binlog puts right what changed while it was copied, without one the "
            "table is locked while it is read. Targets that can't roll back fail"
        ),
    ),
    CheckWarning(
        "system_versioning",
        "the target does not get the shards' former rows",
        "the rows that the shards show arrive",
    ),
    CheckWarning(
        "target_keys",
        "the target has no key",
        "rows are found by all their columns, with their number: exact, but slow",
    ),
    CheckWarning(
        "target_triggers",
        "the account may not see the triggers of a target's schema",
        (
            "a trigger that changes rows makes the target differ from its shards, and nobody is "
            "told: grant TRIGGER, or look yourself. Triggers that are seen fail"
        ),
    ),
    CheckWarning(
        "target_events",
        "the account may not see the events of a target's schema",
        "as for triggers: grant EVENT, or look yourself",
    ),
    CheckWarning(
        "ignore-checking-items",
        "a name is no check's",
        "nothing is left out by it",
    ),
)
"""All of them, in the order of the page."""

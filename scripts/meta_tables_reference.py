"""The reference page of the meta tables, made from their declarations.

``python -m scripts.meta_tables_reference > docs/reference/meta-tables.md`` writes it anew.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta_table import MetaTable

_HEAD = """\
# Meta tables

This page is made from the program (`python -m scripts.meta_tables_reference`); don't edit it.

A task saves all its progress in meta tables, in the `meta-schema` of the target (`dm_meta` unless
the task file says otherwise). Their names begin with the name of the task. Another
host with the same task file continues from them.

* **Do not edit them.** A task does not start with incomplete tables (`task.leftovers`).
* **Back them up with the targets**, in the same consistent backup
  ([Back up and restore](../how-to/move-backup-remove.md#back-up-and-restore)).
* **Upgrades** only add columns and tables ([Upgrade](../how-to/upgrade.md)).

| table | what it holds |
|---|---|
"""

_SCRATCH = (
    "| `<task>_scratch_…` | temporary: an empty table on which the task learns the effect of a"
    " statement, or tries one that the target refused. Each process has its own; a start removes"
    " the tables of killed processes |\n"
)

_COLUMNS = """
## Columns

Schema and table are separate columns everywhere, because `x`.`y.z` and `x.y`.`z` are two tables.
Texts compare byte by byte.
"""

MEANINGS: Mapping[str, str] = {
    "lease": "one row: the token of the run that may write, the number of its last save, and the"
    " host and process that run the task, with start and end of the lease (UTC, by the target's"
    " clock)",
    "checkpoint": "per source: the position from which a restart reads (file, offset, GTID set),"
    " the identity of the server, an *anchor event* that identifies the binlog, the positions of"
    " prepared XA transactions, the number of buckets, the `shard-mode`, the number of open"
    " schema changes, and the position up to which everything is applied that does not wait for"
    " these (`applied`), and whether the next start begins the source at its present position"
    " (`begin_again`)",
    "member": "per shard, at the saved position: its target, version and structure, the position"
    " since which they hold, and the origin of the structure (`provenance`), with the reason if"
    " the task inferred it (`doubt`)",
    "group": "per source and target, with `shard-mode` pessimistic or optimistic: the state of the"
    " sharding group at the saved position",
    "watermark": "per source, target and bucket: version, transaction and ordinal of the last row"
    " event that was applied, the GTID set executed there (empty inside a transaction), and an"
    " anchor event. Bucket -1 holds what all buckets have reached",
    "ddl": "per target: each executed statement with its source, shard and position, whether it is"
    " `pending` or `done`, the fingerprint of the table before it, and what it means for other"
    " shards",
    "ddl_override": "the operator's overrides of statements (`binlog skip`, `replace`, `inject`):"
    " source, position, action, statements",
    "declared": "structures that the operator declared for shards (`schema set`) with the position"
    " from which they hold, until `<task>_member` has them",
    "onlineddl": "online schema changes in progress: per source, ghost table and position, the"
    " statements that changed the ghost table",
    "statement_gtid": "per source and position: the GTIDs of schema changes after the saved"
    " position",
    "failover": "per source: each server that another one replaced, the position and GTID set up to"
    " which the task read it, and the time; for MariaDB also the transactions that the new server"
    " had then",
    "copy": "per source: whether its full copy is complete, and the end of its binlog at that time",
    "chunk": "per chunk of a full copy: the bounds of its key, whether it is on the target, its"
    " rows and bytes, the number of rows that the target gained, and the binlog positions between"
    " which it was read",
    "later_copy": "per shard that is copied after the others of its source: the position after the"
    " saved one where its copy begins, and its structure there",
    "copy_target": "per target that was empty when its full copy began, until one of its shards is"
    " followed: whether it has lost its key during the copy (the task then empties it and copies"
    " it again), and the rows of chunks that are no longer listed",
    "late_cascade": "per row event of a parent and shard of its children: changes by foreign keys"
    " that the task makes when the rows of this shard, which a lock holds, come to this event",
    "tracked_key": "per target: keys that several shards may have, and how often each was tracked,"
    " until at most one shard has the key",
    "rules": "per source: the rules of the task file that decide the form of its rows, as of the"
    " last start",
    "reconciliation": "targets whose rows are compared with those of their shards and corrected,"
    " each with the condition of the rows, the columns that must be compared, how often it was"
    " asked for (`asked`, and when the current pass began, `begun`), the rows corrected, the"
    " progress of the pass, and the sources in safe mode until it is done (`safe_sources`)",
    "safe_mode": "per source that was in safe mode until a target was reconciled: the position"
    " after which no corrected row is newer than its event",
    "retired": "the retired shards, each with the target that keeps its rows, the `place` from"
    " which rows of its source are not applied, and the time. A row without names of a table: the"
    " whole source is retired",
    "verification": "per target: when all of its rows were last compared with those of its shards,"
    " how many were compared and how many differed, the progress of the present comparison",
    "switch": "at most one row, once a switch away from the shards was begun: the variables"
    " that it set on each source, with their former values (`frozen`), when the task was finished"
    " (`finished_at`; 0 if it is not), and the certificate as JSON",
    "validation": "rows that stay different from those of their shards: target, key, kind of"
    " difference and columns, shard, time, the operator's answer, and how often the task has"
    " tried to correct the row",
    "unvalidated": "keys of applied rows that are still to be compared, by target and shard, as"
    " of the last checkpoint; without a shard those of rows that differed",
    "held": "per target with an open schema change or a fault, as of the last checkpoint: the"
    " shards whose rows wait, or (`all_of`) that those of all shards do; the `reason` if it is not"
    " only a schema change",
    "row_owner": "per target: every shard that it may have rows of, whether a table of this name"
    " was dropped (`ended`; the target keeps its rows), and the values of extracted and mapped"
    " columns that all its rows have (`marks`). A row with an empty `source` says whether the"
    " target had rows before the task wrote the first one (`ended`)",
    "moved_shard": "per renaming of targets: the shards that moved, by their former names, with"
    " the `version` at which the former target was renamed; without a name of a table, the place"
    " before which a target had all rows of a source; without targets, the table's number of the"
    " renaming that it waited for (`version`) from a place on. A `pending` one is the write-ahead"
    " record",
}
"""By the suffix of the table: what it holds."""


def page() -> str:
    """The text of docs/reference/meta-tables.md."""
    rows = [f"| `<task>_{table.suffix}` | {MEANINGS[table.suffix]} |\n" for table in META_TABLES]
    return "".join([_HEAD, *rows, _SCRATCH, _COLUMNS, *map(_definition, META_TABLES)])


def _definition(table: MetaTable) -> str:
    lines = "".join(f"{part}\n" for part in table.parts)
    return f"\n### `{table.suffix}`\n\n```sql\n{lines}```\n"


if __name__ == "__main__":
    sys.stdout.write(page())

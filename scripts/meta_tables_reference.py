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
the task file says otherwise). Their names begin with the name of the task. A new host with the same
task file goes on from them.

* **Do not edit them.** A start refuses tables that are not whole (`task.leftovers`).
* **Back them up with the targets**, in the same consistent backup
  ([Back up and restore](../how-to/move-backup-remove.md#back-up-and-restore)).
* **Upgrades** only add columns and tables ([Upgrade](../how-to/upgrade.md)).

| table | what it holds |
|---|---|
"""

_SCRATCH = (
    "| `<task>_scratch_…` | for a moment: an empty table on which the task learns the effect of a"
    " statement, or tries one that the target refused. Each process has its own; a start removes"
    " what a killed process has left |\n"
)

_COLUMNS = """
## Columns

Schema and table are separate columns everywhere, because `x`.`y.z` and `x.y`.`z` are two tables.
Texts compare byte by byte.
"""

MEANINGS: Mapping[str, str] = {
    "lease": "one row: the token of the run that may write, the number of its last save, and which"
    " process on which host has the task, since when and until when (UTC, by the target's clock)",
    "checkpoint": "per source: the position that a restart reads from (file, offset, GTID set), the"
    " identity of the server, an *anchor event* by which the binlog is known, where XA transactions"
    " stand that are prepared there, the number of buckets, the `shard-mode`, and how many schema"
    " changes are open",
    "member": "per shard, at the saved position: its target, version and structure, the place from"
    " which it has them, where the structure comes from (`provenance`), and why a guess is one"
    " (`doubt`)",
    "group": "per source and target of a task with coordinated schema changes: the state of the"
    " sharding group at the saved position",
    "watermark": "per source, target and bucket: version, transaction and ordinal of the last row"
    " event that was applied, the GTIDs executed there (empty inside a transaction), and an anchor"
    " event. Bucket -1 holds what all buckets are known to have",
    "ddl": "per target: each executed statement with its source, shard and place, whether it is"
    " `pending` or `done`, the fingerprint of the table before, and its meaning for other shards",
    "ddl_override": "the operator's answers to statements: source, position, action, statements",
    "declared": "structures that the operator told for shards (`schema set`), and from which place,"
    " until `<task>_member` has them",
    "onlineddl": "online schema changes that are under way: per source, ghost table and place, the"
    " statements that the ghost went through",
    "statement_gtid": "per source and place: the GTIDs of schema changes behind the saved position",
    "failover": "per source: each server that another one took over from, the position and GTIDs up"
    " to which it was read, and when; for MariaDB also which transactions the new server had then",
    "copy": "per source: whether its full copy is complete, and where its binlog ended then",
    "chunk": "per chunk of a full copy: the bounds of its key, whether it is on the target, its"
    " rows and bytes, by how many rows the target has grown, and the place, or the two places, of"
    " the binlog that it was read at",
    "later_copy": "per shard that is copied after the others of its source: the place behind the"
    " saved position where its copy begins, and its structure there",
    "copy_target": "per target that had no rows when its full copy began, until one of its shards"
    " is followed: whether it has lost the key that tells its rows apart, so that the task empties"
    " and copies it again, and the rows of its chunks that are not noted any more",
    "tracked_key": "per target: keys that several shards may have, and how often they were noted,"
    " until at most one shard is known to have them",
    "rules": "per source: the rules of the task file that decide what its rows look like, as of the"
    " last start",
    "validation": "rows that stay different from those of their shards: target, key, how and"
    " in which columns, the shard, when it was found, and the operator's answer",
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

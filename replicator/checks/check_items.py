"""The names of the checks, as used in ``ignore-checking-items``.

Names that DM has, too, have the same meaning (TiDB Data Migration, "Migration Task Precheck"); the
others are our own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from replicator.checks.result import CheckedPart, CheckResult

ALL = "all"
CONNECTION = "connection"
FOREIGN_KEYS = "foreign_keys"
KEY_COLLISIONS = "key_collisions"
READ_ONLY = "read_only"
SPARK_MASTER = "spark_master"
TARGET_CASCADES = "target_foreign_keys"
TARGET_CLUSTER = "target_cluster"
TARGET_EVENTS = "target_events"
TARGET_TRIGGERS = "target_triggers"
TRANSACTION_SIZE = "transaction_size"


CHECKS: dict[str, str] = {
    ALL: "leaves out every check",
    CONNECTION: "the server can be reached and lets us in; cannot be left out alone",
    "version": "a server and version that is supported, at each source and at the target",
    "binlog_enable": "the source writes a binlog",
    "binlog_format": "the binlog holds rows, not statements",
    "binlog_row_image": "row events hold all columns",
    "binlog_row_metadata": "whether row events name their columns",
    "binlog_checksum": "events of the binlog carry a checksum",
    "source_cluster": "a node of a Galera cluster logs the rows of all nodes, with their GTIDs",
    "binlog_expire": "binlogs are kept for long enough to survive a pause of the task",
    "binlog_db": "no replicated schema is kept out of the binlog",
    "server_id": "the source has a server id, and the one that we use there is free",
    "replication_privilege": "the binlog can be read, found out by reading it",
    "dump_privilege": "the rows and structures of the tables can be read",
    "followed_shards": "every shard that the task follows can be read, also if it came later",
    "hidden_tables": "the user sees all tables that routes and allow list take",
    "meta_position": "the binlog position that the task starts from still exists",
    "routes": "whether each source has tables to replicate, and each route matches some",
    "lower_case_table_names": "no two names differ only in case on a server that ignores case",
    "target_privilege": "tables can be made, changed and written in each target schema, by trying",
    READ_ONLY: "the target takes writes",
    TARGET_CLUSTER: "all servers of the target's cluster get what the task writes",
    TRANSACTION_SIZE: "the target takes transactions of a useful size",
    "local_infile": "the target takes the fast way to load rows",
    "sql_mode": "the session settings of the target can be set",
    "max_allowed_packet": "the target takes statements of a useful size",
    "expression_filters": "each expression filter can be evaluated on its table, exactly",
    "table_schema": "each table fits the target's table that it is merged into",
    "schema_of_shard_tables": "the tables that are merged into one have the same structure",
    "auto_increment_ID": "merged tables do not make the same key values",
    KEY_COLLISIONS: "no two shards have the same value of a key of the target (not part of `run`)",
    FOREIGN_KEYS: "no rows change along with a parent's unseen, and none is left out unnoticed",
    "storage_engine": "the tables can be read in a consistent snapshot, and writing be rolled back",
    "merge_tables": "no table has the rows of others, or takes rows for them unseen",
    "system_versioning": "what arrives of tables that keep their former rows",
    "target_rows": "each target is empty before the first full copy into it",
    "target_keys": "the target's keys and foreign keys suit a merge",
    TARGET_TRIGGERS: "no trigger of the target changes what the task writes",
    TARGET_EVENTS: "no event of the target changes rows of the task's targets",
    TARGET_CASCADES: "no foreign key of the target changes rows of the task's targets",
    SPARK_MASTER: "the master of a standalone Spark cluster answers",
    "ignore-checking-items": "the names in the task file are names of this list",
}
"""The name of each check, and the condition that it checks."""

WITHOUT_EFFECT = frozenset(
    {
        "conn_number",
        "online_ddl",
        "empty_region",
        "region_distribution",
        "downstream_version",
        "free_space",
        "downstream_mutex_features",
    }
)
"""Items of DM without a counterpart here; naming them is not a mistake."""


def unknown_items(ignore: Iterable[str]) -> list[CheckResult]:
    """Return a warning for each name that is not the name of a check."""
    known = [*CHECKS, *WITHOUT_EFFECT]
    results = []
    for name in sorted(set(ignore) - set(known)):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        results.append(
            CheckedPart("task").warning(
                "ignore-checking-items",
                f"{name!r} is not the name of a check, so it leaves nothing out",
                f"{hint}The names are: {', '.join(CHECKS)}",
            )
        )
    return results

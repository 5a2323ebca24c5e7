"""The task file of the demo, as a user would write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from replicator.binlog.positions.position import BinlogPosition
from replicator.demo.estate import Estate
from replicator.demo.tables import ENTITIES, META_SCHEMA, TARGET_SCHEMA
from replicator.sandbox.server import DatabaseServer

TASK_NAME = "demo"
_HEAD = """\
# The task of `replicator demo`: follow the binlogs of two sources from where they stood before
# the first row, and merge the tables that look alike.
"""


def write_task_file(path: Path, estate: Estate, starts: dict[str, BinlogPosition]) -> None:
    """Write the task that merges the estate, from these binlog positions on."""
    task: dict[str, Any] = {
        "name": TASK_NAME,
        "task-mode": "incremental",
        "meta-schema": META_SCHEMA,
        "target-database": _endpoint(estate.target),
        "sources": [
            {"source-id": source, "from": _endpoint(server)}
            for source, server in estate.sources.items()
        ],
        "mysql-instances": [
            {
                "source-id": source,
                "meta": {"binlog-name": start.file, "binlog-pos": start.offset},
                "route-rules": [entity.name for entity in ENTITIES],
                "block-allow-list": "shards",
                "syncer-config-name": "often",
            }
            for source, start in starts.items()
        ],
        "routes": {
            entity.name: {
                "schema-pattern": "shop_*",
                "table-pattern": f"{entity.name}_*",
                "target-schema": TARGET_SCHEMA,
                "target-table": entity.name,
            }
            for entity in ENTITIES
        },
        "block-allow-list": {"shards": {"do-dbs": ["~^shop_[0-9]+$"]}},
        "syncers": {"often": {"checkpoint-flush-interval": 1}},
    }
    path.write_text(_HEAD + yaml.safe_dump(task, sort_keys=False), encoding="utf-8")


def _endpoint(server: DatabaseServer) -> dict[str, Any]:
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }

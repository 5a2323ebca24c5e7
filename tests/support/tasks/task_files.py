"""Task files for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import config
from replicator.binlog.positions.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import binlog_end, end_of


def start_of(server: DatabaseServer) -> dict[str, Any]:
    """The present end of a server's binlog, as the ``meta`` of an instance."""
    return _meta(end_of(server))


def _meta(end: BinlogPosition) -> dict[str, Any]:
    return {"binlog-name": end.file, "binlog-pos": end.offset}


def endpoint(server: DatabaseServer) -> dict[str, Any]:
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }


def task_dict(
    name: str,
    sources: dict[str, DatabaseServer],
    target: DatabaseServer,
    *,
    schema: str,
    target_schema: str,
    table_pattern: str = "t*",
    target_table: str = "t",
    **more: Any,
) -> dict[str, Any]:
    """A task that merges ``schema.t*`` of all sources into ``target_schema.t``, from now on.

    A source without a binlog has no start.
    """
    return {
        "name": name,
        "task-mode": "incremental",
        "meta-schema": f"{target_schema}_meta",
        "target-database": endpoint(target),
        "sources": [
            {"source-id": source, "from": endpoint(server)} for source, server in sources.items()
        ],
        "mysql-instances": [
            {
                "source-id": source,
                **({"meta": _meta(end)} if (end := binlog_end(server)) else {}),
                "route-rules": ["merge", "schema"],
                "block-allow-list": "only",
                "syncer-config-name": "sync",
            }
            for source, server in sources.items()
        ],
        "routes": {
            "merge": {
                "schema-pattern": schema,
                "table-pattern": table_pattern,
                "target-schema": target_schema,
                "target-table": target_table,
            },
            "schema": {"schema-pattern": schema, "target-schema": target_schema},
        },
        "block-allow-list": {"only": {"do-dbs": [schema]}},
        "syncers": {"sync": {"checkpoint-flush-interval": 1}},
        "spark": {"master": "local[2]"},
        **more,
    }


def write_task(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / f"{values['name']}.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path


def load(folder: Path, values: dict[str, Any]) -> config.Task:
    return config.load_task(write_task(folder, values))

"""A task file with every key, each with its meaning and its default, made from the models.

``python -m scripts.task_file_template > config/examples/every-key.yaml`` writes it anew. A line
``#key: …`` is a key that may be left out, with its default: without the ``#`` the file means the
same.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from config.base import Section, inner_section, keys_of
from config.models import Task
from scripts.task_file_reference import is_size, pattern_of, shown_duration, supported

_HEAD = """\
# Every key of a task file, with its meaning and its default.
#
# This file is made from the program (`python -m scripts.task_file_template`). A line `#key: …` is a
# key that may be left out: without the `#` the file means the same, or shows what the key is for.
# Keys of DM that have no effect here are not shown; docs/reference/task-file.md lists them.
"""

_NAME = "example"
_PARTS = ("mydumper", "loader", "syncer")
_CONTENTS = tuple(
    f"{kind}-{form}" for kind in ("ca", "cert", "key") for form in ("bytes", "base64")
)

_GIVEN = {
    "name": "merge-orders",
    "task-mode": "all",
    "shard-mode": "pessimistic",
    "target-database.host": "127.0.0.1",
    "target-database.port": "4000",
    "target-database.user": "writer",
    "target-database.password": "${TARGET_PASSWORD}",
    "sources.*.source-id": "shard-a",
    "sources.*.from.host": "10.0.0.1",
    "sources.*.from.port": "3306",
    "sources.*.from.user": "repl",
    "sources.*.from.password": "${SHARD_PASSWORD}",
    "mysql-instances.*.source-id": "shard-a",
    "mysql-instances.*.route-rules": f"[{_NAME}]",
    "mysql-instances.*.block-allow-list": _NAME,
    "mysql-instances.*.mydumper-config-name": _NAME,
    "mysql-instances.*.loader-config-name": _NAME,
    "mysql-instances.*.syncer-config-name": _NAME,
    "routes.*.schema-pattern": "sales_*",
    "routes.*.table-pattern": "orders_*",
    "routes.*.target-schema": "sales",
    "routes.*.target-table": "orders",
    "mydumpers.*.threads": "4",
    "loaders.*.pool-size": "16",
    "syncers.*.checkpoint-flush-interval": "30",
    "block-allow-list.*.do-dbs": '["~^sales_[0-9]+$"]',
}
"""The keys that the file gives, by their patterns."""

_SHOWN = {
    "mysql-instances.*.filter-rules": f"[{_NAME}]",
    "mysql-instances.*.column-mapping-rules": f"[{_NAME}]",
    "mysql-instances.*.expression-filters": f"[{_NAME}]",
    "mysql-instances.*.validator-config-name": _NAME,
    "mysql-instances.*.meta.binlog-name": "binlog.000001",
    "mysql-instances.*.meta.binlog-pos": "4",
    "routes.*.extract-table.table-regexp": "^orders_(.*)$",
    "routes.*.extract-table.target-column": "shard_table",
    "routes.*.extract-schema.schema-regexp": "^sales_(.*)$",
    "routes.*.extract-schema.target-column": "shard_schema",
    "routes.*.extract-source.source-regexp": "^shard-(.*)$",
    "routes.*.extract-source.target-column": "shard_source",
    "filters.*.schema-pattern": "sales_*",
    "filters.*.table-pattern": "orders_*",
    "filters.*.events": "[truncate table, drop table]",
    "filters.*.action": "Ignore",
    "block-allow-list.*.do-tables.*.db-name": "~^sales_[0-9]+$",
    "block-allow-list.*.do-tables.*.tbl-name": "~^orders_",
    "block-allow-list.*.ignore-tables.*.db-name": "sales_1",
    "block-allow-list.*.ignore-tables.*.tbl-name": "orders_old",
    "expression-filter.*.schema": "sales_1",
    "expression-filter.*.table": "orders_1",
    "expression-filter.*.insert-value-expr": "quantity = 0",
    "column-mappings.*.schema-pattern": "sales_*",
    "column-mappings.*.table-pattern": "orders_*",
    "column-mappings.*.expression": "partition id",
    "column-mappings.*.target-column": "id",
    "column-mappings.*.arguments": '["1", "sales_", "orders_"]',
}
"""Values of keys that may be left out, where the default would not show what the key is for."""

LEFT_OUT = {
    "is-sharding",
    "online-ddl-scheme",
    "mysql-instances.*.meta.binlog-gtid",
    *(f"mysql-instances.*.{part}{more}" for part in _PARTS for more in ("", "-thread")),
    "sources.*.filters",
    "sources.*.from.security",
    *(
        f"target-database.security.ssl-{kind}-{form}"
        for kind in ("ca", "cert", "key")
        for form in ("bytes", "base64")
    ),
}
"""Old spellings, other places for a section that is shown, keys that exclude one that is shown."""


def template() -> str:
    """The task file as YAML. It loads where the environment has the two passwords."""
    return "\n".join([_HEAD, *_lines(Task, "", "", given=True)]).rstrip() + "\n"


def _lines(section: type[Section], place: str, indent: str, *, given: bool) -> Iterator[str]:
    for key, name in keys_of(section).items():
        field, here = section.model_fields[name], f"{place}.{key}".lstrip(".")
        inner, many = inner_section(field.annotation)
        if not _belongs(here):
            continue
        if not place:
            yield ""
        yield from _comment(field, indent)
        if inner is None:
            value = _GIVEN.get(pattern_of(here)) if given else None
            mark = "" if value is not None else "#"
            yield f"{indent}{mark}{key}: {value or _shown(here, field)}".rstrip()
            continue
        yield from _section(inner, key, here, many, indent, given=given)


def _section(
    inner: type[Section], key: str, here: str, many: str, indent: str, *, given: bool
) -> Iterator[str]:
    """A key with a section, a list of sections, or named sections below it."""
    pattern = pattern_of(here)
    live = given and any(known.startswith(f"{pattern}.") for known in _GIVEN)
    mark, below = "" if live else "#", indent + "  "
    yield f"{indent}{mark}{key}:"
    if many == ".NAME":
        yield f"{below}{mark}{_NAME}:"
        below += "  "
    lines = list(_lines(inner, here + many, below, given=live))
    if many == "[]":
        first = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("# "))
        lines = _as_item(lines, first, below)
    yield from lines


def _as_item(lines: list[str], first: int, indent: str) -> list[str]:
    """The lines of a section as the item of a list: its first key gets the dash."""
    key = lines[first].strip()
    dashed = f"{indent}#- {key[1:]}" if key.startswith("#") else f"{indent}- {key}"
    shifted = [f"  {line}" if line.strip() else line for line in lines[first + 1 :]]
    return [*lines[:first], dashed, *shifted]


def _belongs(place: str) -> bool:
    pattern, support = pattern_of(place), supported(place)
    shown = pattern in _GIVEN or support == "yes" or support.startswith("no effect: ")
    return shown and pattern not in LEFT_OUT


def _comment(field: FieldInfo, indent: str) -> Iterator[str]:
    words = " ".join((field.description or "").split())
    for line in textwrap.wrap(words, 96 - len(indent)):
        yield f"{indent}# {line}"


def _shown(place: str, field: FieldInfo) -> str:
    shown = _SHOWN.get(pattern_of(place))
    if shown is not None:
        return shown
    value: Any = None if field.is_required() else field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, timedelta):
        return shown_duration(value)
    if is_size(field):
        return f"{value >> 20}MiB"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(repr(item) for item in value)}]"
    return str(value) if value != "" else '""'


if __name__ == "__main__":
    sys.stdout.write(template())

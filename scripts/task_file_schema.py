"""The JSON schema of the task file, made from the models, for editors.

``python -m scripts.task_file_schema > config/task-schema.json`` writes it anew.
"""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from typing import Any

from config.dm_keys import RENAMED
from config.models import Task

_OWNERS = {"": None, "mysql-instances.*": "Instance", "loaders.*": "Loader"}
"""The definition of a section that has old spellings, by its pattern; None: the whole file."""


def schema() -> dict[str, Any]:
    """The schema: it accepts what a task file may say, not whether names lead somewhere."""
    made = Task.model_json_schema()
    for section in (made, *made["$defs"].values()):
        section["properties"] = {
            key: _not_given(value) for key, value in section["properties"].items()
        }
    for pattern, old, new in RENAMED:
        # Inline settings have the same definition as named ones.
        owner = _OWNERS.get(pattern, "Loader")
        properties = (made["$defs"][owner] if owner else made)["properties"]
        properties[old] = {**deepcopy(properties[new]), "deprecated": True}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "Task file of replicator",
    }


def _not_given(value: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key: a key without a value counts as not given."""
    described: dict[str, Any] = {k: value[k] for k in ("description", "default") if k in value}
    described = {k: v for k, v in described.items() if v is not None}
    rest = {k: v for k, v in value.items() if k not in ("description", "default", "title")}
    options = rest["anyOf"] if set(rest) == {"anyOf"} else [rest]
    # A time may be written with a blank, and YAML has passwords as text.
    options = [{k: v for k, v in o.items() if k not in ("format", "writeOnly")} for o in options]
    if {"type": "null"} not in options:
        options = [*options, {"type": "null"}]
    return {**described, "anyOf": options}


def page() -> str:
    """The text of config/task-schema.json."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())

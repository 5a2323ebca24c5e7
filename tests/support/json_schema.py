"""Checking values against a JSON schema, as far as the schema of the task file needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    *("$ref", "anyOf", "type", "enum", "const", "properties", "required", "additionalProperties"),
    *("items", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "pattern"),
    *("$schema", "$defs", "title", "description", "default", "deprecated"),
    *("minItems", "maxItems", "prefixItems"),
}


def problems(schema: Mapping[str, Any], value: object) -> list[str]:
    """What does not fit, each with its place; fails for a keyword that is not known here."""
    return list(_problems(schema, schema, value, ""))


def _problems(root: Mapping[str, Any], own: Any, value: Any, at: str) -> Iterator[str]:
    assert set(own) <= _KNOWN, set(own) - _KNOWN
    if "$ref" in own:
        yield from _problems(root, root["$defs"][own["$ref"].rpartition("/")[2]], value, at)
    if "anyOf" in own:
        found = [list(_problems(root, option, value, at)) for option in own["anyOf"]]
        if all(found):
            yield from min(found, key=lambda texts: max(text.count(".") for text in texts) * -1)
    if "type" in own and not _is(value, own["type"]):
        yield f"{at}: {value!r} is not {own['type']}"
        return
    if "enum" in own and value not in own["enum"]:
        yield f"{at}: {value!r} is none of {own['enum']}"
    if "const" in own and value != own["const"]:
        yield f"{at}: {value!r} is not {own['const']}"
    if isinstance(value, str):
        if not own.get("minLength", 0) <= len(value) <= own.get("maxLength", len(value)):
            yield f"{at}: the length of {value!r}"
        if "pattern" in own and not re.search(own["pattern"], value):
            yield f"{at}: {value!r} does not match"
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = own.get("minimum", value), own.get("maximum", value)
        if not least <= value <= most or value <= own.get("exclusiveMinimum", value - 1):
            yield f"{at}: {value!r} is out of range"
    if isinstance(value, dict):
        yield from _object(root, own, value, at)
    if isinstance(value, list) and "items" in own:
        for number, item in enumerate(value):
            yield from _problems(root, own["items"], item, f"{at}.{number}")


def _object(root: Mapping[str, Any], own: Any, value: dict[str, Any], at: str) -> Iterator[str]:
    for key in own.get("required", ()):
        if key not in value:
            yield f"{at}.{key}: missing"
    known, others = own.get("properties", {}), own.get("additionalProperties", True)
    for key, inner in value.items():
        if key in known:
            yield from _problems(root, known[key], inner, f"{at}.{key}")
        elif others is False:
            yield f"{at}.{key}: unknown"
        elif isinstance(others, dict):
            yield from _problems(root, others, inner, f"{at}.{key}")


def _is(value: object, names: str | Sequence[str]) -> bool:
    kinds = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _TYPES[kind]) for kind in kinds)

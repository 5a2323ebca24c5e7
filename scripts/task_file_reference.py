"""The reference page of the task file, made from the models.

``python -m scripts.task_file_reference > docs/reference/task-file.md`` writes it anew.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, SecretStr
from pydantic.fields import FieldInfo

from config.base import Section, inner_section, keys_of
from config.dm_keys import IGNORED, MODES, NO_EFFECT, UNSUPPORTED, NoEffect
from config.models import Task
from config.references import NAMED_PARTS
from config.values import parse_mebibytes, parse_size

_ENTITIES = {c: f"&#{ord(c)};" for c in "|_*<>&"}

_HEAD = """\
# The task file

A task file says in YAML which tables are merged, and where. It has the keys of a DM task file, so
you can use an existing one as it is. The keys `sources`, `source-files`, `copy`, `limits`,
`memory`, `metrics`, `spark` and `writer` are additions. `replicator files FOLDER` copies examples:
start from one of them. `examples/every-key.yaml` has every key with its meaning and its default,
and loads as it is. `task-schema.json` is a JSON schema: an editor with a YAML language server
completes and checks keys if the first line of the task file is
`# yaml-language-server: $schema=task-schema.json`.

This page is made from the program (`python -m scripts.task_file_reference`); don't edit it.

* **Sources** are listed under `sources`, or in files of their own that `source-files` names, or
  both. Each has the form of a DM source file.
* **Named sections** (`routes`, `block-allow-list`, `syncers`, …): an instance refers to them by
  name. A name that is not defined is an error, and so is a section that no instance uses.
* **Passwords** are plain text, `${NAME}` for the environment variable NAME, `ENC(…)` as printed by
  `replicator encrypt`, or the content of a `password-file`. Only `password` is expanded, and only
  if the variable is the whole value. A variable or file that is missing is an error.
* **Sizes** are bytes, or have a unit: `64KiB`, `16MiB`, `1GiB`. **Durations** look like `60s` or
  `1h30m`.
* **Old spellings** are accepted: `is-sharding: true` for `shard-mode: pessimistic`,
  `black-white-list` for `block-allow-list`, `on-duplicate` for `on-duplicate-logical`.
* A key without a value counts as not given.
* The task reports all mistakes together, each with its file, line and key. It warns of keys that it
  accepts and that have no effect.

The last column says *yes* for a key that is supported, *not yet* for one that is an error for now,
and *no effect* for a key of DM that is accepted with a warning. If it names a `task-mode`, this
holds in that mode only.
"""

_DM_FILES = """\
## Task files of DM

The public repository `pingcap/tiflow` (commit `c7b2588ef6c7` of 2026-08-20, checked on 2026-11-26)
has 198 task files in DM's tests and examples. With their source files added and nothing else
changed, 184 of them (93 %) load, most of them with warnings about the keys below. The others do
not:

| task files | why |
|---|---|
| 10 | a password that DM encrypted, or `******`: write it as one of the forms above |
| 3 | a filter names an event that a statement alone does not show |
| 1 | placeholders that DM's test replaces |

Of the files that load, two have expression filters that are refused when the task starts: `NOW()`,
and a path into a JSON value.

`python -m scripts.dm_task_files FOLDER` checks the task files of a checkout.

### Keys without effect

Each of these keys is accepted with a warning, unless it is empty. The keys of `mydumpers`,
`loaders` and `syncers` also stand for the same keys in an instance.

| key | `task-mode` | why |
|---|---|---|"""

_NAMES: dict[object, str] = {
    str: "text",
    int: "whole number",
    bool: "true / false",
    Any: "anything",
    SecretStr: "text, secret",
    timedelta: "duration",
}


def _in_a_table(cell: str) -> str:
    """A cell of a table. Code with a bar is HTML: within backticks not all renderers take an
    escaped one for a bar."""

    def code(found: re.Match[str]) -> str:
        return "<code>" + "".join(_ENTITIES.get(c, c) for c in found[1]) + "</code>"

    return re.sub(r"`([^`]*\|[^`]*)`", code, cell).replace("|", "\\|")


def reference_page() -> str:
    """The page as Markdown: one table for each section, the top level first."""
    parts = [_HEAD]
    seen: dict[type[Section], str] = {Task: ""}
    waiting: deque[tuple[str, type[Section]]] = deque([("", Task)])
    while waiting:
        place, section = waiting.popleft()
        for below, inner in _sections_in(place, section):
            if inner not in seen:
                seen[inner] = below
                waiting.append((below, inner))
        parts.append("\n".join(_table(place, section, seen)))
    return "\n".join([*parts, _DM_FILES, *_without_effect()])


def _without_effect() -> Iterator[str]:
    """The rows of the last table: the keys that have a reason in common together."""
    merged: dict[tuple[str, tuple[str, ...]], list[NoEffect]] = {}
    inline = tuple(f"mysql-instances.*.{part.inline}." for part in NAMED_PARTS if part.inline)
    for entry in (*NO_EFFECT, *IGNORED):
        if not entry.pattern.startswith(inline):
            merged.setdefault((entry.why, entry.modes), []).append(entry)
    for (why, modes), entries in merged.items():
        keys = ", ".join(f"`{entry.pattern}{_values(entry)}`" for entry in entries)
        shown = "each" if len(modes) == len(MODES) else ", ".join(f"`{mode}`" for mode in modes)
        yield f"| {keys} | {shown} | {why} |"
    yield ""


def _values(entry: NoEffect) -> str:
    return "".join(f": {str(value).lower()}" for value in entry.values)


def _sections_in(place: str, section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    for key, name in keys_of(section).items():
        inner, many = inner_section(section.model_fields[name].annotation)
        if inner is not None:
            yield _join(place, key) + many, inner


def _table(place: str, section: type[Section], seen: dict[type[Section], str]) -> Iterator[str]:
    yield f"## {f'`{place}`' if place else 'Top level'}\n"
    for paragraph in (section.__doc__ or "").split("\n\n"):
        yield f"{' '.join(paragraph.split())}\n"
    yield "| key | type | default | meaning | supported |"
    yield "|---|---|---|---|---|"
    for key, name in keys_of(section).items():
        field, here = section.model_fields[name], _join(place, key)
        inner, _ = inner_section(field.annotation)
        kind = _type_name(field)
        if inner is not None:
            kind += f", see `{seen[inner]}`"
        meaning = " ".join((field.description or "").split())
        cells = [f"`{key}`", kind, _default(field), meaning, supported(here)]
        yield "| " + " | ".join(map(_in_a_table, cells)) + " |"
    yield ""


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _type_name(field: FieldInfo) -> str:
    return "size" if is_size(field) else _name_of(field.annotation)


def is_size(field: FieldInfo) -> bool:
    """Whether a key takes a size in bytes."""
    # Of one that may be left out they stand one level below.
    below = [m for part in get_args(field.annotation) for m in getattr(part, "__metadata__", ())]
    parsers = [m.func for m in (*field.metadata, *below) if isinstance(m, BeforeValidator)]
    return parse_size in parsers or parse_mebibytes in parsers


def _name_of(annotation: Any) -> str:
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{choice}`" if choice else '`""`' for choice in arguments)
    if origin is tuple:
        inner = _name_of(arguments[0])
        return "list of sections" if inner == "section" else "list"
    if origin is dict:
        return "named sections" if inner_section(annotation)[0] else "`name: value` lines"
    if origin in (Union, UnionType):
        return " or ".join(_name_of(a) for a in arguments if a is not NoneType)
    if hasattr(annotation, "__metadata__"):
        return _name_of(arguments[0])
    return "section"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or isinstance(value, Section):
        return "none"
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, timedelta):
        return f"`{shown_duration(value)}`"
    if is_size(field):
        return f"`{value >> 20}MiB`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value) or "`[]`"
    return f"`{value}`" if value != "" else '`""`'


def shown_duration(value: timedelta) -> str:
    """A duration as a task file has it."""
    seconds = value.total_seconds()
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


def pattern_of(place: str) -> str:
    """The place of `walk` as a pattern for `config.paths.select`."""
    return place.replace("[]", ".*").replace(".NAME", ".*")


def supported(place: str) -> str:
    """What the last column says of a key by its place: ``yes``, or what else becomes of it."""
    patterns = _with_sections_around(pattern_of(place))
    for part in NAMED_PARTS:
        if part.section in patterns:
            patterns.add(f"mysql-instances.*.{part.key}")
    patterns |= {f"{pattern}.*" for pattern in patterns}
    missing = [entry for entry in UNSUPPORTED if entry.pattern in patterns]
    entries = [entry for entry in (*NO_EFFECT, *IGNORED) if entry.pattern in patterns]
    idle = {mode for entry in entries for mode in entry.modes}
    if missing:
        values = ", ".join(f"`{str(v).lower()}`" for entry in missing for v in entry.values)
        return f"not yet: {values}" if values else "not yet"
    if not idle:
        return "yes"
    if given := {entry.unless for entry in entries if isinstance(entry, NoEffect)} - {""}:
        return f"no effect without `{', '.join(sorted(given))}`"
    named = ", ".join(f"`{mode}`" for mode in MODES if mode in idle)
    return f"no effect: {named}" if len(idle) < len(MODES) else "no effect"


def _with_sections_around(pattern: str) -> set[str]:
    steps = pattern.split(".")
    return {".".join(steps[:length]) for length in range(1, len(steps) + 1)}


if __name__ == "__main__":
    sys.stdout.write(reference_page())

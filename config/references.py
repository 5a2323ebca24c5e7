"""Names that refer to other parts of the file: each must exist, and each part must be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from config.paths import Path, select
from config.problems import did_you_mean


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A section of named parts, and the keys of an instance that refer to them."""

    section: str
    key: str
    many: bool = False
    """Whether the key has a list of names."""
    inline: str = ""
    """The key that contains such a part itself, instead of a name."""


NAMED_PARTS: tuple[NamedPart, ...] = (
    NamedPart("routes", "route-rules", many=True),
    NamedPart("filters", "filter-rules", many=True),
    NamedPart("column-mappings", "column-mapping-rules", many=True),
    NamedPart("expression-filter", "expression-filters", many=True),
    NamedPart("block-allow-list", "block-allow-list"),
    NamedPart("mydumpers", "mydumper-config-name", inline="mydumper"),
    NamedPart("loaders", "loader-config-name", inline="loader"),
    NamedPart("syncers", "syncer-config-name", inline="syncer"),
    NamedPart("validators", "validator-config-name"),
)


def find_wrong_references(data: object) -> Iterator[tuple[Path, str]]:
    """Yield the path and the message of every name of a missing part, and of every unused part."""
    if not isinstance(data, dict):
        return
    for part in NAMED_PARTS:
        yield from _named_part(data, part)
    yield from _sources(data)


def find_unused_sources(data: object) -> Iterator[tuple[Path, str]]:
    """Yield the path and a warning for every source that no instance uses."""
    used = {value for _, value in select(data, "mysql-instances.*.source-id")}
    for path, value in select(data, "sources.*.source-id"):
        if value not in used:
            yield path, f"the source `{value}` is not used by any of the mysql-instances"


def _named_part(data: dict[str, object], part: NamedPart) -> Iterator[tuple[Path, str]]:
    section = data.get(part.section)
    names = list(section) if isinstance(section, dict) else []
    used = set()
    pattern = f"mysql-instances.*.{part.key}" + (".*" if part.many else "")
    for path, name in select(data, pattern):
        if not isinstance(name, str) or (not name and not part.many):
            continue
        used.add(name)
        if name not in names:
            there = did_you_mean(name, names)
            yield path, f"`{name}` is not defined in `{part.section}`{there}"
    if part.inline:
        for path, instance in select(data, "mysql-instances.*"):
            if not isinstance(instance, dict) or not instance.get(part.key):
                continue
            if instance.get(part.inline) is not None:
                message = f"`{part.key}` names one already; keep one of the two"
                yield (*path, part.inline), message
    for name in names:
        if name not in used:
            message = (
                f"`{name}` is not used: name it in `{part.key}` of one of the mysql-instances,"
                " or delete it"
            )
            yield (part.section, name), message


def _sources(data: dict[str, object]) -> Iterator[tuple[Path, str]]:
    if not data.get("sources") and not data.get("source-files"):
        yield ("sources",), "is missing: describe the sources here, or name files in `source-files`"
        return
    defined: set[str] = set()
    for path, name in select(data, "sources.*.source-id"):
        if isinstance(name, str):
            if name in defined:
                yield path, f"there is another source with the id `{name}`"
            defined.add(name)
    used: set[str] = set()
    for path, name in select(data, "mysql-instances.*.source-id"):
        if not isinstance(name, str):
            continue
        if name in used:
            yield path, f"`{name}` has an instance already; each source has one"
        elif name not in defined:
            there = did_you_mean(name, defined)
            yield path, f"there is no source with the id `{name}`{there}"
        used.add(name)

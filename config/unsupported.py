"""What DM's task file can ask for and this program can't do yet: the one list of it.

When something becomes supported, delete its entry here; the reference page follows by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from config.paths import Path, select


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key that can't be used yet: any value but an empty one, or only the values named."""

    pattern: str
    """Keys joined by dots, `*` for any name or index (`config.paths.select`)."""
    what: str
    """What is not supported, as the subject of a sentence."""
    instead: str = ""
    """What to write instead, as a full clause."""
    values: tuple[object, ...] = ()
    """The values that are not supported; none: every value that is not empty."""
    modes: tuple[str, ...] = ()
    """The values of ``task-mode`` with which it is not; none: with each."""

    def applies(self, value: object) -> bool:
        """Whether this value of the key is not supported."""
        return value in self.values if self.values else bool(value)


_COPIES = ("full", "all")
_WHERE = (
    "copying only the rows that meet a condition",
    "delete the key; rows that changed later would come from the binlog, whatever they hold",
)

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported(
        "shard-mode",
        "optimistic coordination of shard DDL",
        "use `pessimistic`, or leave `shard-mode` empty",
        ("optimistic",),
    ),
    Unsupported(
        "sources.*.enable",
        "a source that is switched off",
        "delete the key, or leave the source out of mysql-instances",
        (False,),
    ),
    Unsupported("mydumpers.*.where", *_WHERE, modes=_COPIES),
    Unsupported("mysql-instances.*.mydumper.where", *_WHERE, modes=_COPIES),
)


def find_unsupported(data: object) -> Iterator[tuple[Path, str]]:
    """The path and the message of everything in the file that is not supported yet."""
    mode = data.get("task-mode") if isinstance(data, dict) else None
    for entry in UNSUPPORTED:
        if entry.modes and mode not in entry.modes:
            continue
        for path, value in select(data, entry.pattern):
            if entry.applies(value):
                named = f" (`{value}`)" if isinstance(value, str) else ""
                instead = f"; {entry.instead}" if entry.instead else ""
                yield path, f"not supported yet{named}: {entry.what}{instead}"

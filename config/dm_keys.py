"""Keys of DM that need special handling: old spellings, and keys that have no effect or fail here.

Old spellings are replaced before anything is checked. A key without effect causes a warning, and an
unsupported key an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from config.paths import Path, select
from config.yaml_lines import Document

MODES = ("full", "incremental", "all")
"""The values of ``task-mode``."""


RENAMED: tuple[tuple[str, str, str], ...] = (
    ("", "black-white-list", "block-allow-list"),
    ("mysql-instances.*", "black-white-list", "block-allow-list"),
    ("loaders.*", "on-duplicate", "on-duplicate-logical"),
    ("mysql-instances.*.loader", "on-duplicate", "on-duplicate-logical"),
)
"""Section (a pattern), old key and present key."""

NOT_GIVEN: tuple[object, ...] = (None, "", [], {})
"""Values that mean "not set". DM prints both spellings of a key, with one of them empty."""


def replace_old_spellings(document: Document) -> None:
    """Rename old keys in the data. Messages about them still name the key as written."""
    for pattern, old, new in RENAMED:
        for path, section in list(select(document.data, pattern)):
            if not isinstance(section, dict) or old not in section:
                continue
            if section[old] in NOT_GIVEN:
                pass
            elif section.get(new) not in NOT_GIVEN:
                message = f"is the old spelling of `{new}`, which is there too; keep `{new}` alone"
                document.problems.append(document.problem((*path, old), message))
            else:
                section[new] = section[old]
                document.copy_places((*path, old), (*path, new))
            del section[old]
    _replace_is_sharding(document)


def _replace_is_sharding(document: Document) -> None:
    """Replace ``is-sharding.

    True``, which means pessimistic mode in DM if ``shard-mode`` is empty.
    """
    data = document.data
    if isinstance(data, dict) and data.get("is-sharding") is True and not data.get("shard-mode"):
        data["shard-mode"] = "pessimistic"
        document.copy_places(("is-sharding",), ("shard-mode",))


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A key without effect, and the reason."""

    pattern: str
    """Keys joined by dots; `*` matches any name or index (`config.paths.select`)."""
    why: str
    modes: tuple[str, ...] = MODES
    """The values of ``task-mode`` with which the key has no effect."""
    values: tuple[object, ...] = ()
    """The values that cause a warning; empty for all values that are set."""
    unless: str = ""
    """A key in the same section that gives this key an effect."""

    def applies(self, value: object) -> bool:
        """Return whether this value of the key causes a warning."""
        if self.values:
            return value in self.values
        # A number of 0 is DM's way to leave the number out.
        return value not in NOT_GIVEN and (value != 0 or isinstance(value, bool))


_NO_COPY = "there is no full copy with task-mode incremental"
_NO_BINLOG = "the task does not follow the binlog with task-mode full"
_OWN_START = "replication starts where the full copy began"
_NO_DUMP = "no dump program runs"
_INSTANCE = "mysql-instances.*"
_BATCHES = "`writer` decides the size of batches"
_NO_RELAY = (
    "without `relay-dir` the task reads the binlog from the source, which must keep its files until"
    " then (`replicator status` shows how close it is to purging them)"
)
_RELAY_START = "the relay log begins with the binlog file of the task's position"
_ALWAYS = "changes of a row are always merged within a batch"
_SQL_MODE = "each statement is read with the sql_mode of its own session"
_LAG = "the lag is measured from the binlog"
_OLD = "DM no longer uses it"
_ROWS_ONLY = "the target's server writes all rows; nothing is imported into its files"
_SESSION = "the task sets its own session variables at a source"

_MYDUMPER = {
    "mydumper-path": _NO_DUMP,
    "statement-size": "rows are not written in statements of a given size",
    "skip-tz-utc": "timestamps are always read and written in UTC",
    "extra-args": _NO_DUMP + "; rows that the arguments exclude are copied too",
}

_LOADER = {
    "dir": "no dump files are written",
    "import-mode": _ROWS_ONLY,
    **dict.fromkeys(
        (
            "sorting-dir-physical",
            "on-duplicate-physical",
            "disk-quota-physical",
            "checksum-physical",
            "analyze",
            "range-concurrency",
            "compress-kv-pairs",
            "pd-addr",
        ),
        _ROWS_ONLY,
    ),
}

_SYNCER = {
    "worker-count": "`writer.buckets` sets how many transactions write at the same time",
    "batch": _BATCHES,
    "queue-size": "`writer.mailbox-segments` bounds the queue",
    "compact": _ALWAYS,
    "multiple-rows": "many rows are always written at once",
    "enable-ansi-quotes": _SQL_MODE,
    "safe-mode-duration": (
        "rows and checkpoint are written in one transaction, so no start needs safe mode; "
        "`safe-mode: true` lasts as long as the task runs"
    ),
    "meta-file": _OLD,
    "max-retry": _OLD,
    "auto-fix-gtid": _OLD,
    "enable-gtid": "`enable-gtid` of the source counts",
    "disable-detect": "changes of the same key are never written in parallel",
}


def _of_stage(
    named: str, inline: str, keys: Mapping[str, str], idle: str, idle_modes: tuple[str, ...]
) -> Iterator[NoEffect]:
    """Yield the entries of a stage.

    ``keys`` never have an effect; the other keys of the stage have none while the stage is idle.
    """
    at_work = tuple(mode for mode in MODES if mode not in idle_modes)
    for section, part in ((named, f"{named}.*"), (f"{_INSTANCE}.{inline}",) * 2):
        yield NoEffect(section, idle, idle_modes)
        yield from (NoEffect(f"{part}.{key}", why, at_work) for key, why in keys.items())


NO_EFFECT: tuple[NoEffect, ...] = (
    NoEffect("enable-heartbeat", _LAG),
    NoEffect("heartbeat-update-interval", _LAG),
    NoEffect("heartbeat-report-interval", _LAG),
    NoEffect("ansi-quotes", _SQL_MODE),
    NoEffect("clean-dump-file", "no dump files are written"),
    NoEffect(
        "collation_compatible", "tables are always made with the collations that the shards have"
    ),
    NoEffect("experimental", "it is about how DM itself works"),
    NoEffect("validators", _NO_BINLOG, ("full",)),
    NoEffect("validators.*.meta-flush-interval", "errors are saved when they are found"),
    NoEffect("validators.*.max-pending-row-size", "`max-pending-row-count` bounds what waits"),
    *_of_stage("mydumpers", "mydumper", _MYDUMPER, _NO_COPY, ("incremental",)),
    NoEffect("mysql-instances.*.mydumper-thread", _NO_COPY, ("incremental",)),
    *_of_stage("loaders", "loader", _LOADER, _NO_COPY, ("incremental",)),
    NoEffect("mysql-instances.*.loader-thread", _NO_COPY, ("incremental",)),
    NoEffect("copy", _NO_COPY, ("incremental",)),
    *_of_stage("syncers", "syncer", _SYNCER, _NO_BINLOG, ("full",)),
    NoEffect("mysql-instances.*.syncer-thread", _NO_BINLOG, ("full",)),
    NoEffect("mysql-instances.*.syncer-thread", _SYNCER["worker-count"], ("incremental", "all")),
    NoEffect(
        "column-mappings.*.create-table-query",
        "a missing target is created from its shards; for another form, create it by hand",
    ),
    NoEffect("target-database.max-allowed-packet", "the server's own limit is used"),
    NoEffect("sources.*.from.max-allowed-packet", "the server's own limit is used"),
    NoEffect("sources.*.from.session", _SESSION),
    NoEffect("sources.*.enable", "every task may use the sources that it names", values=(True,)),
    NoEffect("sources.*.charset", "text is read as the bytes that are stored"),
    NoEffect("sources.*.auto-fix-gtid", _OLD),
    NoEffect("sources.*.meta-dir", _OLD),
    NoEffect("sources.*.tracer", _OLD),
    NoEffect("sources.*.enable-relay", _NO_RELAY, values=(True,), unless="relay-dir"),
    NoEffect("sources.*.relay-binlog-name", _RELAY_START),
    NoEffect("sources.*.relay-binlog-gtid", _RELAY_START),
    NoEffect("sources.*.purge", _NO_RELAY, unless="relay-dir"),
    NoEffect("sources.*.checker", "a source that fails is restarted with increasing delays"),
)


IGNORED: tuple[NoEffect, ...] = (
    NoEffect("mysql-instances.*.meta", _NO_BINLOG, ("full",)),
    NoEffect("mysql-instances.*.meta", _OWN_START, ("all",)),
)
"""Keys whose values are not even checked in these modes."""


def take_out_ignored(data: object) -> list[tuple[Path, str]]:
    """Remove the keys that DM does not read in this ``task-mode``, whatever their values.

    Return the path and a message for each key that had a value.
    """
    mode = data.get("task-mode") if isinstance(data, dict) else None
    found = []
    for entry in IGNORED:
        if mode not in entry.modes:
            continue
        section, _, key = entry.pattern.rpartition(".")
        for path, values in select(data, section):
            if not isinstance(values, dict) or key not in values:
                continue
            if values.pop(key) not in NOT_GIVEN:
                found.append(((*path, key), f"has no effect: {entry.why}"))
    return found


def find_no_effect(data: object) -> Iterator[tuple[Path, str]]:
    """Yield the path and a message for each key in the file that has no effect."""
    mode = data.get("task-mode") if isinstance(data, dict) else None
    for entry in NO_EFFECT:
        if mode not in entry.modes:
            continue
        for path, value in select(data, entry.pattern):
            if entry.applies(value) and not _is_given_beside(data, path, entry.unless):
                yield path, f"has no effect: {entry.why}"


def _is_given_beside(data: object, path: Path, key: str) -> bool:
    """Return whether a key is set in the same section."""
    section: Any = data
    for step in path[:-1]:
        section = section[step]
    return bool(key) and section.get(key) not in NOT_GIVEN


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key that is not supported: any value except an empty one, or only some values."""

    pattern: str
    """Keys joined by dots; `*` matches any name or index (`config.paths.select`)."""
    what: str
    """The unsupported feature, as the subject of a sentence."""
    instead: str = ""
    """The alternative, as a full clause."""
    values: tuple[object, ...] = ()
    """The values that are not supported; empty for every value that is set."""
    modes: tuple[str, ...] = ()
    """The values of ``task-mode`` with which the key is not supported; empty for all."""

    def applies(self, value: object) -> bool:
        """Return whether this value of the key is not supported."""
        return value in self.values if self.values else bool(value)


_COPIES = ("full", "all")
_WHERE = (
    "copying only the rows that meet a condition",
    "delete the key; rows that changed later would come from the binlog, whatever they hold",
)

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported(
        "sources.*.enable",
        "a source that is switched off",
        "delete the key, or leave the source out of mysql-instances",
        (False,),
    ),
    Unsupported("mydumpers.*.where", *_WHERE, modes=_COPIES),
    Unsupported("mysql-instances.*.mydumper.where", *_WHERE, modes=_COPIES),
)
"""The only list of what DM's task file can request and this program does not support.

When something becomes supported, delete its entry here; the reference page is generated from the
list.
"""


def find_unsupported(data: object) -> Iterator[tuple[Path, str]]:
    """Yield the path and the message of everything in the file that is not supported."""
    mode = data.get("task-mode") if isinstance(data, dict) else None
    for entry in UNSUPPORTED:
        if entry.modes and mode not in entry.modes:
            continue
        for path, value in select(data, entry.pattern):
            if entry.applies(value):
                named = f" (`{value}`)" if isinstance(value, str) else ""
                instead = f"; {entry.instead}" if entry.instead else ""
                yield path, f"not supported yet{named}: {entry.what}{instead}"

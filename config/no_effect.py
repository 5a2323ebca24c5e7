"""DM's keys that are accepted and do nothing here: each is answered with a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from config.paths import Path, select

MODES = ("full", "incremental", "all")
"""The values of ``task-mode``."""


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A key without effect, and why."""

    pattern: str
    """Keys joined by dots, `*` for any name or index (`config.paths.select`)."""
    why: str
    modes: tuple[str, ...] = MODES
    """The values of ``task-mode`` with which it has no effect."""


_NO_COPY = "there is no full copy with task-mode incremental"
_NO_BINLOG = "the binlog is not followed with task-mode full"
_OWN_START = "the binlog is followed from where the full copy began"
_NO_DUMP = "no dump program is run"
_INSTANCE = "mysql-instances.*"
_BATCHES = "batches are made as `writer` says"
_NO_RELAY = "there is no relay log"
_ALWAYS = "changes of a row are always merged within a batch"
_SQL_MODE = "statements are read with the sql_mode they were written in"
_LAG = "the lag is measured from the binlog"

_MYDUMPER = {
    "mydumper-path": _NO_DUMP,
    "statement-size": "rows are not read or written by statements of a size",
    "skip-tz-utc": "each timestamp is copied as the moment that it is",
    "extra-args": _NO_DUMP + ", so whatever they leave out is copied, too",
}

_LOADER = {
    "dir": "no dump files are written",
    "import-mode": "rows are always written by the target itself, never into its files",
}

_SYNCER = {
    "worker-count": "`writer.buckets` says how many transactions write at the same time",
    "batch": _BATCHES,
    "queue-size": "`writer.mailbox-segments` says how much waits",
    "compact": _ALWAYS,
    "multiple-rows": "rows are always written many at a time",
    "enable-ansi-quotes": _SQL_MODE,
}


def _of_stage(
    named: str, inline: str, keys: Mapping[str, str], idle: str, idle_modes: tuple[str, ...]
) -> Iterator[NoEffect]:
    """The entries of a stage: ``keys`` have no effect, and none of it has while it is idle."""
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
    *_of_stage("mydumpers", "mydumper", _MYDUMPER, _NO_COPY, ("incremental",)),
    *_of_stage("loaders", "loader", _LOADER, _NO_COPY, ("incremental",)),
    NoEffect("copy", _NO_COPY, ("incremental",)),
    *_of_stage("syncers", "syncer", _SYNCER, _NO_BINLOG, ("full",)),
    NoEffect("mysql-instances.*.meta", _NO_BINLOG, ("full",)),
    NoEffect("mysql-instances.*.meta", _OWN_START, ("all",)),
    NoEffect("target-database.max-allowed-packet", "the server's own limit is used"),
    NoEffect("sources.*.from.max-allowed-packet", "the server's own limit is used"),
    NoEffect("sources.*.relay-dir", _NO_RELAY),
    NoEffect("sources.*.relay-binlog-name", _NO_RELAY),
    NoEffect("sources.*.relay-binlog-gtid", _NO_RELAY),
    NoEffect("sources.*.purge", _NO_RELAY),
    NoEffect("sources.*.checker", "a source that fails is restarted with increasing delays"),
)


def find_no_effect(data: object) -> Iterator[tuple[Path, str]]:
    """The path and the message of every key in the file that has no effect."""
    mode = data.get("task-mode") if isinstance(data, dict) else None
    for entry in NO_EFFECT:
        if mode not in entry.modes:
            continue
        for path, value in select(data, entry.pattern):
            if value is not None and value != {}:
                yield path, f"has no effect: {entry.why}"

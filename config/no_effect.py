"""DM's keys that are accepted and do nothing here: each is answered with a warning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from config.paths import Path, select


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A key without effect, and why."""

    pattern: str
    """Keys joined by dots, `*` for any name or index (`config.paths.select`)."""
    why: str


_NO_COPY = "there is no full copy with task-mode incremental"
_BATCHES = "batches are made as `writer` says"
_NO_RELAY = "there is no relay log"
_ALWAYS = "changes of a row are always merged within a batch"
_SQL_MODE = "statements are read with the sql_mode they were written in"
_LAG = "the lag is measured from the binlog"

_SYNCER = {
    "worker-count": "`writer.buckets` says how many transactions write at the same time",
    "batch": _BATCHES,
    "queue-size": "`writer.mailbox-chunks` says how much waits",
    "compact": _ALWAYS,
    "multiple-rows": "rows are always written many at a time",
    "enable-ansi-quotes": _SQL_MODE,
}

NO_EFFECT: tuple[NoEffect, ...] = (
    NoEffect("enable-heartbeat", _LAG),
    NoEffect("heartbeat-update-interval", _LAG),
    NoEffect("heartbeat-report-interval", _LAG),
    NoEffect("ansi-quotes", _SQL_MODE),
    NoEffect("clean-dump-file", "no dump files are written"),
    NoEffect("mydumpers", _NO_COPY),
    NoEffect("loaders", _NO_COPY),
    NoEffect("mysql-instances.*.mydumper", _NO_COPY),
    NoEffect("mysql-instances.*.loader", _NO_COPY),
    *(NoEffect(f"syncers.*.{key}", why) for key, why in _SYNCER.items()),
    *(NoEffect(f"mysql-instances.*.syncer.{key}", why) for key, why in _SYNCER.items()),
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
    for entry in NO_EFFECT:
        for path, value in select(data, entry.pattern):
            if value is not None and value != {}:
                yield path, f"has no effect: {entry.why}"

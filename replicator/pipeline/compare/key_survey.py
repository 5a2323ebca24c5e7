"""Finds the tracked keys of a target that several shards have, while the task runs.

A key that at most one shard has is forgotten, but only after the task has applied all events before
the positions at which the shards were read. This forgets no key too early:

* If a shard deleted the key before its position, the task has recorded the key again by then, and a
  key that was recorded again is not forgotten.
* If a shard gets the key after its position, its row is written over the row on the target. In safe
  mode, this records the key again; otherwise it is a duplicate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from replicator.downstream.fence import Fence
from replicator.downstream.meta.lease import lock_lease
from replicator.downstream.meta.tracked_keys import (
    KEYS_AT_ONCE,
    MANY_KEYS,
    TrackedKey,
    forget_keys,
    tracked_keys,
)
from replicator.downstream.rows.key_lookup import key_queries
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import folded
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions, rows_with_keys
from replicator.pipeline.copy.copy_chunk import source_snapshot
from replicator.pipeline.copy.key_conflicts import own_key
from replicator.pipeline.copy.source_stream import TARGET_SETTINGS, SourceStream

ATTEMPTS, ATTEMPT_PAUSE = 100, 0.1
"""Maximum number of snapshots of a shard, and the pause between them in seconds.

The last snapshot has to show everything that was read from the shard's binlog: a server may
send a transaction before other sessions see it.
"""

EXAMPLES = 3
"""Number of shared keys that a survey names."""


class TooOldError(Exception):
    """Queries to a source do not see everything that the task has read from its binlog."""


class OtherKeyError(Exception):
    """The recorded keys have other columns than the target's key has now."""


@dataclass(frozen=True, slots=True)
class FollowedSource:
    """A source that the task follows.

    Attributes:
        server: the server whose binlog is followed.
        read: the position (key) up to which it is read.
    """

    server: ServerIdentity
    read: int


@dataclass(slots=True)
class KeySurvey:
    """The result of searching the shards for the tracked keys of a target.

    Attributes:
        keys: number of keys that were searched for.
        shared: number of keys that several shards have.
        examples: some shared keys, each with its shards.
        missing: the lines of keys that one shard has and the target will lack after ``read_at`` is
            applied.
        settled: keys to forget after ``read_at`` is applied.
        read_at: by source, the position (key) at which its shards were read.
    """

    keys: int = 0
    shared: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)
    missing: list[bytes] = field(default_factory=list)
    settled: list[TrackedKey] = field(default_factory=list)
    read_at: dict[str, int] = field(default_factory=dict)


def survey_keys(
    comparison: ComparisonPlan,
    table: str,
    servers: CompareServers,
    sources: Mapping[str, FollowedSource],
) -> KeySurvey:
    """Search the shards for all tracked keys of a target; ``table`` is the keys' quoted table.

    A key that is recorded during the search may be left out. Raises OtherKeyError, TooOldError,
    OtherServerError or the driver's error.
    """
    result = KeySurvey(read_at={source: followed.read for source, followed in sources.items()})
    after = b""
    with closing(Session(servers.target)) as session:
        while noted := tracked_keys(session, table, comparison.target.name, after):
            after = noted[-1].digest
            _refuse_other_columns(comparison, noted)
            _survey_page(comparison, noted, servers, sources, result)
            if len(result.settled) + len(result.missing) >= MANY_KEYS:
                # The lists of these keys use memory. The other keys follow after these are settled.
                break
    return result


def _survey_page(
    comparison: ComparisonPlan,
    noted: Sequence[TrackedKey],
    servers: CompareServers,
    sources: Mapping[str, FollowedSource],
    result: KeySurvey,
) -> None:
    lines = [key.line for key in noted]
    having: list[list[ComparedTable]] = [[] for _ in noted]
    for shard in comparison.shards:
        found, read_at = _held(shard, lines, servers, sources[shard.source])
        result.read_at[shard.source] = max(read_at, result.read_at.get(shard.source, 0))
        for number in found:
            having[number].append(shard)
    # All rows of the target, including rows of shards that do not exist any more.
    target = replace(comparison.target, conditions=())
    with closing(SourceStream(servers.target, settings=TARGET_SETTINGS)) as stream:
        there = _numbers(stream, target, lines)
    for number, (key, shards) in enumerate(zip(noted, having, strict=True)):
        result.keys += 1
        if len(shards) > 1:
            result.shared += 1
            if len(result.examples) < EXAMPLES:
                shown = key.line.decode("utf-8", "backslashreplace")
                result.examples.append((shown, ", ".join(map(str, shards))))
        elif number in there or not shards:
            result.settled.append(key)
        else:
            result.missing.append(key.line)


def _held(
    shard: ComparedTable, lines: Sequence[bytes], servers: CompareServers, source: FollowedSource
) -> tuple[set[int], int]:
    """Return the numbers of the keys that a shard has, and the position at which it has them."""
    address = servers.sources[shard.source]
    for _ in range(ATTEMPTS):
        with source_snapshot(address, shard.snapshot, True, source.server) as (stream, read_at):
            if read_at >= source.read:
                return _numbers(stream, shard, lines), read_at
        time.sleep(ATTEMPT_PAUSE)
    raise TooOldError(f"{shard} shows no row that is as new as its binlog")


def _numbers(stream: SourceStream, table: ComparedTable, lines: Iterable[bytes]) -> set[int]:
    """Return the numbers (from 0) of the target's key lines that a table has."""
    keys = ((number, own_key(table.key, line)) for number, line in enumerate(lines))
    found: set[int] = set()
    for query in key_queries((number, key) for number, key in keys if key is not None):
        conditions = b" AND ".join([query.condition, *(b"(%s)" % c for c in table.conditions)])
        name = table.name.quoted.encode()
        rows = stream.rows(b"SELECT %s FROM %s WHERE %s" % (query.number, name, conditions))
        found.update(int(number) for (number,) in rows)
    return found


def keys_as_written(
    comparison: ComparisonPlan, lines: Sequence[bytes], servers: CompareServers
) -> list[bytes]:
    """Return the key lines of the shards' rows with these keys.

    They may differ from the given key lines, because a server compares keys by their collation.
    Raises the driver's error.
    """
    with closing(Sessions(servers)) as sessions:
        rows = (
            normal
            for shard in comparison.shards
            for normal, _ in rows_with_keys(comparison, shard, lines, sessions)
        )
        return list(dict.fromkeys(map(comparison.key_of, rows)))


def forget_settled(
    session: Session, table: str, fence: Fence, comparison: ComparisonPlan, found: KeySurvey
) -> None:
    """Forget the settled keys of a survey, except for keys that were recorded again meanwhile.

    Everything before ``read_at`` must be applied. Raises FencedError or the driver's error.
    """
    for first in range(0, len(found.settled), KEYS_AT_ONCE):
        session.run(b"BEGIN")
        lock_lease(session, fence)
        page = found.settled[first : first + KEYS_AT_ONCE]
        forget_keys(session, table, comparison.target.name, page)
        session.run(b"COMMIT")
        reach(Failpoint.KEYS_FORGOTTEN)


def _refuse_other_columns(comparison: ComparisonPlan, noted: Sequence[TrackedKey]) -> None:
    for columns in {key.columns for key in noted}:
        if tuple(map(folded, columns)) != comparison.key_names:
            raise OtherKeyError(f"by {', '.join(columns)}")

"""Which of the tracked keys of a target several shards have: looked up while the task works.

A key that one shard has, or none, is forgotten once everything is applied that stood before the
places at which the shards were read. If a shard deleted it before such a place, that has noted it
again by then, and a key that was noted again is not forgotten. If one gets it behind such a place,
its row meets the one that is there: in safe mode that notes the key, otherwise it is a duplicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replicator.downstream.fence import Fence
from replicator.downstream.meta.lease import lock_lease
from replicator.downstream.meta.tracked_keys import (
    KEYS_AT_ONCE,
    MANY_KEYS,
    TrackedKey,
    forget_keys,
    tracked_keys,
)
from replicator.downstream.rows.key_lookup import keys_there
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import Member, TableName
from replicator.pipeline.moved_rows.key_holders import KeyHolder, keys_held
from replicator.pipeline.moved_rows.moved_rows import refuse_other_columns

EXAMPLES = 3
"""Shared keys that are named."""


@dataclass(slots=True)
class Survey:
    """What a look at the tracked keys of a target has found.

    ``keys`` were noted; ``shared`` are those that several shards have, some of them as ``examples``
    with their shards. Once the sources are applied up to the places ``read_at``, ``settled`` are to
    be forgotten, and ``missing`` are the lines of those that a shard has and the target should have
    got.
    """

    target: TargetTable
    keys: int = 0
    shared: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)
    missing: list[bytes] = field(default_factory=list)
    settled: list[TrackedKey] = field(default_factory=list)
    read_at: dict[str, int] = field(default_factory=dict)


def survey(
    session: Session, table: str, key_columns: Sequence[TargetColumn], holders: Sequence[KeyHolder]
) -> Survey:
    """Look all tracked keys of a target up in its shards; ``table`` is the quoted name of them.

    What is noted meanwhile may be left out. Raises OtherKeyError, TooOldError or the driver's
    error.
    """
    target = holders[0].copy.target
    result = Survey(target)
    for noted in _pages(session, table, target.name):
        refuse_other_columns(key_columns, noted)
        lines = [key.line for key in noted]
        having: list[list[KeyHolder]] = [[] for _ in noted]
        for holder in holders:
            held = keys_held(holder, lines)
            source = holder.copy.source
            result.read_at[source] = max(held.read_at, result.read_at.get(source, 0))
            for number in held.keys:
                having[number].append(holder)
        there = keys_there(session, target, key_columns, lines)
        for number, (key, found) in enumerate(zip(noted, having, strict=True)):
            _count(result, key, found, there=number in there)
        if len(result.settled) + len(result.missing) >= MANY_KEYS:
            # These take memory; what is left is looked up when they are done with.
            break
    return result


def forget_settled(session: Session, table: str, fence: Fence, found: Survey) -> int:
    """Forget the settled keys of a survey; how many were not noted again since.

    All that stood before the places of the reading must be applied. Raises FencedError or the
    driver's error.
    """
    forgotten = 0
    for first in range(0, len(found.settled), KEYS_AT_ONCE):
        session.run(b"BEGIN")
        lock_lease(session, fence)
        page = found.settled[first : first + KEYS_AT_ONCE]
        forgotten += forget_keys(session, table, found.target.name, page)
        session.run(b"COMMIT")
        reach(Failpoint.KEYS_FORGOTTEN)
    return forgotten


def is_applied(found: Survey, applied: Mapping[str, int]) -> bool:
    """Whether all is applied that stood before the places of a survey's reading."""
    return all(applied.get(source, 0) >= place for source, place in found.read_at.items())


def _pages(session: Session, table: str, target: TableName) -> Iterator[list[TrackedKey]]:
    after = b""
    while noted := tracked_keys(session, table, target, after):
        yield noted
        after = noted[-1].digest


def _count(result: Survey, key: TrackedKey, holders: Sequence[KeyHolder], *, there: bool) -> None:
    result.keys += 1
    if holders and not there:
        result.missing.append(key.line)
    if len(holders) > 1:
        result.shared += 1
        if len(result.examples) < EXAMPLES:
            members = ", ".join(str(Member(h.copy.source, h.copy.member)) for h in holders)
            shown = key.line.decode("utf-8", "backslashreplace")
            result.examples.append((shown, members))
    elif there or not holders:
        result.settled.append(key)

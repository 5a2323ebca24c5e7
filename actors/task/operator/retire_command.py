"""The operator's request to retire shards of a running task: their rows stay on the target.

The command line repeats the request until it is done, or until a reason against it persists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define

from actors.control.protocol import Reply
from actors.counting.task_counts import TaskCounts
from actors.task.wiring.held_shards import held_shards
from actors.task.wiring.wiring import RunningTask
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.retirements import EVERY_SHARD
from replicator.mysql.names import Member, TableName

Shards = Mapping[str, frozenset[TableName] | None]
"""The shards to retire by source; None for all shards of the source."""


@define(eq=False)
class RetireCommand:
    """Shards to retire, and the conditions for that."""

    _running: RunningTask | None
    _counts: TaskCounts

    def reply(self, arguments: Mapping[str, Any]) -> Reply:
        """Answer one request.

        The body has ``done``, or the ``reasons`` to wait. If ``final``, only the operator can
        change these reasons; then ``targets`` are the targets whose rows wait.

        Args:
            arguments: ``sources`` and ``shards`` (source, schema, table) to retire; ``ends``: by
                source, the position up to which its rows must be applied.
        """
        shards = asked_shards(arguments)
        left = self._not_retired(shards)
        if not left:
            return _answer(done=True)
        if refused := self._counts.retiring.refused:
            self._counts.retiring.refused = ()
            return _answer(reasons=refused)
        if self._counts.retiring.asked:
            return _answer(reasons=("the task starts without the shards",))
        if self._running is None:
            return _answer(reasons=("the task does not follow its sources yet",))
        try:
            members = self._members(left)
        except ValueError as error:
            return Reply(ok=False, error=str(error))
        ends = {s: BinlogPosition.parse(text) for s, text in arguments["ends"].items() if text}
        waiting = dict(self._waiting(members))
        final = (*self._unread(members), *waiting.values(), *self._connected(members, left))
        if final:
            targets = {str(self._target_of(number)) for number in waiting}
            return _answer(reasons=final, final=True, targets=sorted(targets))
        if reasons := tuple(self._passing(members, ends)):
            return _answer(reasons=reasons)
        self._counts.retiring.ask(left)
        return _answer(reasons=("the task starts without the shards",))

    def _not_retired(self, shards: Shards) -> Shards:
        done = {one.member for one in self._counts.retiring.done}
        found: dict[str, frozenset[TableName] | None] = {}
        for source, names in shards.items():
            if Member(source, EVERY_SHARD) in done:
                continue
            left = None if names is None else {n for n in names if Member(source, n) not in done}
            if left is None or left:
                found[source] = None if left is None else frozenset(left)
        return found

    def _members(self, shards: Shards) -> list[tuple[int, Member]]:
        """Return the members with their numbers.

        Raises ValueError if the task does not follow one of them.
        """
        assert self._running is not None
        registry = self._running.registry
        sources = {*self._running.units, *self._running.stopped}
        found = []
        for source, names in shards.items():
            if source not in sources:
                raise ValueError(
                    f"the task has no source {source}; it has: {', '.join(sorted(sources))}"
                )
            numbers = {registry.member(n).name: n for n in registry.members_in(source)}
            for name in sorted(numbers if names is None else names):
                if name not in numbers:
                    raise ValueError(f"the task does not follow {source}: {name}")
                found.append((numbers[name], Member(source, name)))
        gone = {member for _, member in found}
        every = {registry.member(n) for s in registry.sources() for n in registry.members_in(s)}
        if every <= gone:
            raise ValueError("no shard would be left: stop the task instead")
        if not sources - {source for source, names in shards.items() if names is None}:
            raise ValueError("no source would be left: stop the task instead")
        return found

    def _target_of(self, number: int) -> TableName:
        assert self._running is not None
        return self._running.registry.target_name(self._running.registry.target_of(number))

    def _unread(self, members: list[tuple[int, Member]]) -> Iterator[str]:
        """Yield the sources that are not read until the operator acts."""
        assert self._running is not None
        stopped = self._running.stopped
        for source in sorted({member.source for _, member in members} & stopped.keys()):
            away = stopped[source].away
            yield f"the source {source} is not read{f': {away}' if away else ''}"

    def _waiting(self, members: list[tuple[int, Member]]) -> Iterator[tuple[int, str]]:
        """Yield the members whose rows wait until the operator acts, each with the reason."""
        assert self._running is not None
        held = held_shards(self._running, lambda _: "the target is blocked")
        for number, member in members:
            waits = held.get(self._target_of(number))
            if waits is not None and waits.holds(str(member)):
                yield number, f"rows of {member} wait: {waits.reason or 'a schema change'}"

    def _connected(self, members: list[tuple[int, Member]], shards: Shards) -> Iterator[str]:
        """Yield the members that can be retired only together with others."""
        assert self._running is not None
        gone = {member for _, member in members}
        for _, member in members:
            unit = self._running.units.get(member.source)
            if unit is None or shards[member.source] is None:
                continue
            family = {Member(member.source, name) for name in unit.reader.family(member.name)}
            if left := sorted(str(other.name) for other in family - gone):
                yield (
                    f"foreign keys connect {member} with {', '.join(left)}, and the source does not"
                    " log the rows that they change: retire these shards together, with a --shard"
                    " option for each"
                )

    def _passing(
        self, members: list[tuple[int, Member]], ends: Mapping[str, BinlogPosition]
    ) -> Iterator[str]:
        """Yield the temporary reasons why shards wait."""
        running = self._running
        assert running is not None
        registry = running.registry
        for source, end in ends.items():
            unit = running.units.get(source)
            at = unit.reader.progress.position if unit else None
            if at is None or at.binlog.key < end.key:
                reached = at.binlog if at else "nothing yet"
                yield f"{source} is read up to {reached}, not yet to {end}"
        reconciled = {entry.target for entry in self._counts.reconciling.entries.values()}
        for number, member in members:
            target = self._target_of(number)
            if member.name in registry.deferred_in(member.source):
                yield f"{member} is being copied"
            if str(target) in reconciled:
                yield f"{target} is being reconciled, with values that only its shards have"
            if target in running.mover.targets:
                yield f"{target} waits for shards to be renamed"


def asked_shards(arguments: Mapping[str, Any]) -> Shards:
    """Return the shards that a request names."""
    found: dict[str, frozenset[TableName] | None] = {}
    for source, schema, table in arguments.get("shards") or ():
        found[source] = (found.get(source) or frozenset()) | {TableName(schema, table)}
    return found | dict.fromkeys(map(str, arguments.get("sources") or ()))


def _answer(
    *,
    done: bool = False,
    reasons: tuple[str, ...] = (),
    final: bool = False,
    targets: Sequence[str] = (),
) -> Reply:
    body = {"done": done, "reasons": list(reasons), "final": final, "targets": list(targets)}
    return Reply(ok=True, body=body)

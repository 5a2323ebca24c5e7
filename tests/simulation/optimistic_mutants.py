"""Wrong versions of the join rule: each must be found out by its simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from replicator.sharding.optimistic import shapes
from replicator.sharding.optimistic.history import HistoryEntry, Release, TargetHistory
from replicator.sharding.optimistic.shapes import Key, Shape
from replicator.sharding.optimistic.shard_states import TargetState
from replicator.watermark import Place
from tests.simulation.optimistic import Follower, OptimisticWorld
from tests.simulation.optimistic_estate import Ddl, Values

Patch = Callable[[pytest.MonkeyPatch], None]


def answer_not_saved(patch: pytest.MonkeyPatch) -> None:
    """The answer is in memory only: after a crash another one may be given."""
    original = OptimisticWorld.record

    def record(self: OptimisticWorld, *arguments: Any, **more: Any) -> None:
        original(self, *arguments, **more)
        self.kept.records.pop()

    patch.setattr(OptimisticWorld, "record", record)


def floors_not_saved(patch: pytest.MonkeyPatch) -> None:
    """A step does not wait until the watermarks before it are saved."""
    patch.setattr(OptimisticWorld, "save_floors", lambda _: None)


def saved_behind_open(patch: pytest.MonkeyPatch) -> None:
    """Open statements do not keep the saved position back."""
    patch.setattr(OptimisticWorld, "open", lambda *_: [])


def structures_of_saved_positions(patch: pytest.MonkeyPatch) -> None:
    """The taken structures of a new run are those at the saved positions."""
    original = OptimisticWorld.loaded

    def loaded(self: OptimisticWorld) -> TargetHistory[str]:
        found = original(self)
        members = dict(found.state.members)
        for name, shard_state in members.items():
            structure = self.estate.initial[name]
            for at, event in self.logs[name[0]]:
                if at.transaction < self.kept.positions[name[0]] and isinstance(event, Ddl):
                    structure = event.after or structure if event.member == name else structure
            members[name] = replace(shard_state, taken=structure)
        found.state = TargetState(members, found.state.fills)
        return found

    patch.setattr(OptimisticWorld, "loaded", loaded)


def release_without_restart(patch: pytest.MonkeyPatch) -> None:
    """Held members go on where their source is read just then."""

    def do_stop(self: OptimisticWorld, name: str) -> None:
        source = self.followers[name]
        due = self.due(source)
        self.release(source, due)
        source.held -= due.keys()
        source.version = self.history.version(name)

    patch.setattr(OptimisticWorld, "do_stop", do_stop)


def release_forgets_the_former(patch: pytest.MonkeyPatch) -> None:
    """What a release had not reached is not carried over to the next one."""

    def next_release(
        self: TargetHistory[str],
        source: str,
        released: Mapping[str, Place],
        applied: tuple[int, Place] | None,
    ) -> Release[str]:
        at = applied[1] if applied is not None else Place(-1, 0)
        return Release(self.version(source) + 1, at, tuple(sorted(released.items())))

    patch.setattr(TargetHistory, "next_release", next_release)


def releases_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Rows of members that were not held are applied again behind a release."""
    patch.setattr(OptimisticWorld, "flows", lambda *_: True)


def update_writes_fills(patch: pytest.MonkeyPatch) -> None:
    def update(self: OptimisticWorld, key: str, own: Values) -> None:
        assert self.kept.shape is not None
        fills = {c: self.fill(c) for c in self.kept.shape.columns if c not in own and c != "id"}
        self.kept.rows[key] |= own | fills

    patch.setattr(OptimisticWorld, "update", update)


def key_of_any_shard(patch: pytest.MonkeyPatch) -> None:
    """A key comes with the first shard, and goes with the last."""

    def _unique(found: Sequence[Shape], primary: Key | None) -> frozenset[Key]:
        keys: Collection[Key] = {key for shape in found for key in shape.unique}
        return frozenset(keys) - {primary}

    patch.setattr(shapes, "_unique", _unique)


def saved_at_release(patch: pytest.MonkeyPatch) -> None:
    """A source that restarts begins where it was, not before what it held."""

    def follow(self: OptimisticWorld, source: str) -> Follower:
        found = original(self, source)
        former = getattr(self, "followers", {}).get(source)
        if former is not None and former.stopping:
            found.next = max(found.next, former.next)
        return found

    original = OptimisticWorld.follow
    patch.setattr(OptimisticWorld, "follow", follow)


def steps_not_put_off(patch: pytest.MonkeyPatch) -> None:
    """A step does not wait until what buckets have of other sources is read again."""
    patch.setattr(OptimisticWorld, "level", lambda *_: True)


def fill_of_present_default(patch: pytest.MonkeyPatch) -> None:
    """Rows get the target's default, which may have changed since the column came."""

    def fill(self: OptimisticWorld, column: str) -> str:
        return self.kept.defaults.get(column, self.history.state.fills[column].sql)

    patch.setattr(OptimisticWorld, "fill", fill)


def stale_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A column that a shard has dropped is added again as if it were new."""
    original = TargetHistory.take

    def take(self: TargetHistory[str], entry: HistoryEntry[str]) -> None:
        original(self, entry)
        members = {n: replace(s, stale=frozenset()) for n, s in self.state.members.items()}
        self.state = TargetState(members, self.state.fills)

    patch.setattr(TargetHistory, "take", take)


def released_by_counting(patch: pytest.MonkeyPatch) -> None:
    """Rows that were held begin behind what was applied of their source, not behind their place."""

    def next_release(
        self: TargetHistory[str],
        source: str,
        released: Mapping[str, Place],
        applied: tuple[int, Place] | None,
    ) -> Release[str]:
        return replace(original(self, source, released, applied), members=())

    original = TargetHistory.next_release
    patch.setattr(TargetHistory, "next_release", next_release)


def key_of_the_last_shard(patch: pytest.MonkeyPatch) -> None:
    """A key stays until the last shard has dropped it, and comes with that one."""

    def _unique(found: Sequence[Shape], primary: Key | None) -> frozenset[Key]:
        counts = Counter(key for shape in found for key in shape.unique)
        most = len(found) - (1 if len(found) > 1 else 0)
        return frozenset(k for k, count in counts.items() if count >= most) - {primary}

    patch.setattr(shapes, "_unique", _unique)


def parts_follow_their_last_statement(patch: pytest.MonkeyPatch) -> None:
    """What no row tells is on the target if the last statement was about it, and else never."""
    patch.setattr(TargetHistory, "lagging", frozenset())


OPTIMISTIC_MUTANTS: dict[str, Patch] = {
    found.__name__: found
    for found in (
        answer_not_saved,
        floors_not_saved,
        saved_behind_open,
        structures_of_saved_positions,
        release_without_restart,
        release_forgets_the_former,
        releases_not_compared,
        update_writes_fills,
        key_of_any_shard,
        saved_at_release,
        steps_not_put_off,
        fill_of_present_default,
        stale_forgotten,
        released_by_counting,
        key_of_the_last_shard,
        parts_follow_their_last_statement,
    )
}


@contextmanager
def optimistic_mutated(name: str) -> Iterator[None]:
    """With one of the mutants in place of the rule."""
    with pytest.MonkeyPatch.context() as patch:
        OPTIMISTIC_MUTANTS[name](patch)
        yield

"""Wrong versions of the rule: each must be found out by the simulation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from actors.writing.segment_tracker import Boundary, Resume
from replicator.sharding.hold import HoldBuffer
from replicator.sharding.items import Cutover, Item, MemberState, Recorded, RowDecision, Template
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place
from tests.simulation.store import Forwarded, TargetTable
from tests.simulation.world import World

Patch = Callable[[pytest.MonkeyPatch], None]


def _deciding(change: Callable[[Group[str, None], str, RowDecision], RowDecision]) -> Patch:
    original = Group.row

    def row(self: Group[str, None], member: str, at: Place, count: int = 1) -> RowDecision:
        decision = change(self, member, original(self, member, at, count))
        if decision is not RowDecision.HOLD:
            self.held.clear()
        return decision

    return lambda patch: patch.setattr(Group, "row", row)


def skip_for_hold(_group: Group[str, None], _member: str, decision: RowDecision) -> RowDecision:
    return RowDecision.SKIP if decision is RowDecision.HOLD else decision


def apply_for_hold(_group: Group[str, None], _member: str, decision: RowDecision) -> RowDecision:
    return RowDecision.APPLY if decision is RowDecision.HOLD else decision


def hold_for_skip(_group: Group[str, None], _member: str, decision: RowDecision) -> RowDecision:
    return RowDecision.HOLD if decision is RowDecision.SKIP else decision


def apply_for_skip(_group: Group[str, None], _member: str, decision: RowDecision) -> RowDecision:
    return RowDecision.APPLY if decision is RowDecision.SKIP else decision


def hold_for_apply(_group: Group[str, None], _member: str, decision: RowDecision) -> RowDecision:
    return RowDecision.HOLD if decision is RowDecision.APPLY else decision


def version_off_by_one(patch: pytest.MonkeyPatch) -> None:
    original = Group.ddl

    def ddl(self: Group[str, None], item: Item[str, None]) -> Recorded:
        recorded = original(self, item)
        state = self.members[item.member]
        self.members[item.member] = MemberState(state.version + 1, state.since, state.awaited)
        return recorded

    patch.setattr(Group, "ddl", ddl)


def watermark_not_compared(patch: pytest.MonkeyPatch) -> None:
    def commit(
        self: TargetTable,
        source: str,
        bucket: int,
        rows: list[Forwarded],
        end: tuple[int, Place],
        *,
        orderly: bool,
    ) -> None:
        for given in rows:
            self.apply(bucket, given, orderly=orderly)
        self.watermarks[source, bucket] = end

    patch.setattr(TargetTable, "commit", commit)


def watermark_by_position_only(patch: pytest.MonkeyPatch) -> None:
    def commit(
        self: TargetTable,
        source: str,
        bucket: int,
        rows: list[Forwarded],
        end: tuple[int, Place],
        *,
        orderly: bool,
    ) -> None:
        for given in rows:
            if given.at > self.watermark(source, bucket)[1]:
                self.apply(bucket, given, orderly=orderly)
        self.watermarks[source, bucket] = max(
            end, self.watermark(source, bucket), key=lambda watermark: watermark[1]
        )

    patch.setattr(TargetTable, "commit", commit)


def saved_behind_items(patch: pytest.MonkeyPatch) -> None:
    """Restart behind the open items instead of before them."""
    original = vars(Group)["open_items"].fget

    def open_items(self: Group[str, None]) -> tuple[Place, ...]:
        return tuple(Place(at.transaction + 1, 0) for at in original(self))

    patch.setattr(Group, "open_items", property(open_items))


def saved_anywhere(patch: pytest.MonkeyPatch) -> None:
    """Open items do not keep the saved position back."""
    patch.setattr(Group, "open_items", ())


def only_latest_item_open(patch: pytest.MonkeyPatch) -> None:
    original = vars(Group)["open_items"].fget
    patch.setattr(Group, "open_items", property(lambda self: original(self)[-1:]))


def boundaries_forgotten(patch: pytest.MonkeyPatch) -> None:
    def applied(self: Resume[Any], reached: Boundary[Any], open_items: object) -> None:
        self._boundaries = [reached]

    patch.setattr(Resume, "applied", applied)


def adopt_after_holding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "can_adopt", property(lambda self: self.base > self.known))


def ready_before_all(patch: pytest.MonkeyPatch) -> None:
    def ready(self: Group[str, None]) -> bool:
        versions = [state.version for state in self.members.values()]
        return not versions or max(versions) > self.known

    def made(self: Group[str, None], text: str) -> bool:
        states = self.members.values()
        return not states or any(state.made(text, self.known + 1) for state in states)

    patch.setattr(Group, "ready", property(ready))
    patch.setattr(Group, "made", made)


def ready_of_one_source(patch: pytest.MonkeyPatch) -> None:
    def agreed(self: TargetLock[str, None]) -> bool:
        ready = [source for source in self.sources if self.ready(source)]
        return self.pending is None and any(map(self.candidates, ready))

    patch.setattr(TargetLock, "agreed", property(agreed))


def ready_for_any_version(patch: pytest.MonkeyPatch) -> None:
    """A source is ready although it has not restarted with the version before."""

    def ready(self: TargetLock[str, None], source: str) -> bool:
        group = self.groups.get(source)
        return group is not None and group.ready

    patch.setattr(TargetLock, "ready", ready)
    patch.setattr(
        Group,
        "ready",
        property(lambda self: all(s.version > self.base for s in self.members.values())),
    )


def ready_while_reading_again(patch: pytest.MonkeyPatch) -> None:
    """Earlier readings, which went further, do not keep a group from being ready."""

    def ready(self: Group[str, None]) -> bool:
        return all(state.version > self.known for state in self.members.values())

    patch.setattr(Group, "ready", property(ready))


def no_barrier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(World, "barrier", lambda self, target: True)


def execute_before_cutovers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TargetLock, "may_execute", property(lambda self: self.pending is not None))


def compared_as_a_set(patch: pytest.MonkeyPatch) -> None:
    """Items are compared with everything a source brought, not at their place."""

    def agreed(self: TargetLock[str, None]) -> bool:
        texts = [
            {item.text for items in group.items.values() for item in items}
            for group in self.groups.values()
            if group.members
        ]
        having = any(map(self.candidates, self.sources))
        common = bool(texts and set.intersection(*texts))
        return self.pending is None and having and common and all(map(self.ready, self.sources))

    patch.setattr(TargetLock, "agreed", property(agreed))


def cutovers_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Forced and other cutovers are not saved."""
    original = World.do_record

    def do_record(self: World, target: str) -> None:
        original(self, target)
        self.store.tables[target].cutovers.clear()

    patch.setattr(World, "do_record", do_record)


def cutover_at_the_saved_position(patch: pytest.MonkeyPatch) -> None:
    """Members are forced from where the source is saved, not behind what was applied."""
    original = Group.cut_over

    def cut_over(self: Group[str, None], resolved: Any, resume: Place, *, forced: bool) -> Cutover:
        made = original(self, resolved, resume, forced=forced)
        if forced:
            made = Cutover(made.version, resume, forced)
            self._cutovers = (*self._cutovers[:-1], made)
            self._reach(max(self.seen, resume))
        return made

    patch.setattr(Group, "cut_over", cut_over)


def awaited_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A member's own DDL is a new item although an unlock gave it to the member before."""
    patch.setattr(Group, "_awaited", lambda self, state, item: None)


def executed_again(patch: pytest.MonkeyPatch) -> None:
    """After a crash it is not looked up whether the pending item took effect."""

    def recover(self: TargetTable) -> None:
        if self.pending is not None:
            self.execute(self.pending)

    patch.setattr(TargetTable, "recover", recover)


def joins_at_the_known_version(patch: pytest.MonkeyPatch) -> None:
    original = Group.join

    def join(
        self: Group[str, None],
        member: str,
        at: Place,
        template: Template[str] | None,
        equals: Collection[Template[str]] = (),
    ) -> MemberState:
        original(self, member, at, template, equals)
        self.members[member] = MemberState(self.known, at)
        return self.members[member]

    patch.setattr(Group, "join", join)


def _joining(change: Callable[[MemberState], MemberState]) -> Patch:
    def patched(patch: pytest.MonkeyPatch) -> None:
        original = Group.join

        def join(
            self: Group[str, None],
            member: str,
            at: Place,
            template: Template[str] | None,
            equals: Collection[Template[str]] = (),
        ) -> MemberState:
            state = self.members[member] = change(original(self, member, at, template, equals))
            return state

        patch.setattr(Group, "join", join)

    return patched


def older_items_not_granted(state: MemberState) -> MemberState:
    """A table that is created without items that all others have will make them anew."""
    return replace(state, awaited=())


def unseen_items_are_there(state: MemberState) -> MemberState:
    """What a structure does not show a created table has."""
    return replace(state, optional=())


def adopted_while_ahead(patch: pytest.MonkeyPatch) -> None:
    """What a created table was taken for is not looked at again."""

    def can_adopt(self: Group[str, None]) -> bool:
        return self.base > self.known and not self.held[self.known + 1]

    patch.setattr(Group, "can_adopt", property(can_adopt))


def rename_forgets_the_version(patch: pytest.MonkeyPatch) -> None:
    original = Group.rename

    def rename(self: Group[str, None], old: str, new: str, at: Place) -> None:
        since = self.members[old].since
        original(self, old, new, at)
        self.members[new] = MemberState(self.base, since)

    patch.setattr(Group, "rename", rename)


def released_in_another_order(patch: pytest.MonkeyPatch) -> None:
    """Held rows are forwarded, but not as they were read."""
    original = Group.release
    patch.setattr(Group, "release", lambda self: original(self)[::-1])


def forgotten_when_released(patch: pytest.MonkeyPatch) -> None:
    """The items of released rows do not stay open until the rows are applied."""
    original = Group.release

    def release(self: Group[str, None]) -> list[Any]:
        parts = original(self)
        self.releasing.clear()
        return parts

    patch.setattr(Group, "release", release)
    patch.setattr(Group, "released", lambda self, version: None)


def released_with_rows_missing(patch: pytest.MonkeyPatch) -> None:
    """It is not asked whether all rows of a version are in memory."""
    patch.setattr(Group, "can_release", property(lambda self: self._at_hand))


def kept_though_rows_are_missing(patch: pytest.MonkeyPatch) -> None:
    """After rows were dropped, later ones of the same version are kept and released."""

    def drop_from(self: HoldBuffer[Any], version: int) -> None:
        for later in [held for held in self._parts if held >= version]:
            self.take(later)

    patch.setattr(HoldBuffer, "drop_from", drop_from)
    released_with_rows_missing(patch)


def kept_over_a_restart(patch: pytest.MonkeyPatch) -> None:
    """What was held in memory is still there when the source has read it again."""
    start, stop = TargetLock.start, TargetLock.stop
    buffers: dict[tuple[int, str], Any] = {}

    def stopped(self: TargetLock[str, None], source: str) -> None:
        group = self.groups[source]
        buffers[id(self), source] = group.buffer, group.held
        stop(self, source)

    def started(self: TargetLock[str, None], source: str, *given: Any) -> Group[str, None]:
        group = start(self, source, *given)
        group.buffer, group.held = buffers.pop((id(self), source), (group.buffer, group.held))
        return group

    patch.setattr(TargetLock, "stop", stopped)
    patch.setattr(TargetLock, "start", started)


def no_barrier_after_release(patch: pytest.MonkeyPatch) -> None:
    """The next item is executed though released rows are not applied."""
    original = World.barrier

    def barrier(self: World, target: str) -> bool:
        waiting = [
            segment
            for source in self.sources.values()
            for segment in source.segments
            if segment.release and not segment.applied
        ]
        for segment in waiting:
            segment.applied = True
        found = original(self, target)
        for segment in waiting:
            segment.applied = False
        return found

    patch.setattr(World, "barrier", barrier)


MUTANTS: Mapping[str, Patch] = {
    **{
        change.__name__: _deciding(change)
        for change in (
            skip_for_hold,
            apply_for_hold,
            hold_for_skip,
            apply_for_skip,
            hold_for_apply,
        )
    },
    **{
        patch.__name__: patch
        for patch in (
            version_off_by_one,
            watermark_not_compared,
            watermark_by_position_only,
            saved_behind_items,
            saved_anywhere,
            only_latest_item_open,
            boundaries_forgotten,
            adopt_after_holding,
            ready_before_all,
            ready_of_one_source,
            ready_for_any_version,
            ready_while_reading_again,
            no_barrier,
            execute_before_cutovers,
            compared_as_a_set,
            cutovers_forgotten,
            cutover_at_the_saved_position,
            awaited_forgotten,
            executed_again,
            joins_at_the_known_version,
            rename_forgets_the_version,
            adopted_while_ahead,
            released_in_another_order,
            forgotten_when_released,
            released_with_rows_missing,
            kept_though_rows_are_missing,
            kept_over_a_restart,
            no_barrier_after_release,
        )
    },
    **{
        change.__name__: _joining(change)
        for change in (older_items_not_granted, unseen_items_are_there)
    },
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Within it the rule is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name](patch)
        yield

"""A model of the actors around the join rule, in steps that a schedule or a crash may part.

The answers, histories and releases are those of production (`replicator.sharding.optimistic`). What
is modelled is how they are used: groups that wait for answers, barriers, batches over buckets,
write-ahead records, restarts; and a target whose rows are columns with values. A row of a shard
that lacks a column gets its fill; ADD gives it to the rows that are there, DROP takes it away.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from replicator.mysql.names import folded
from replicator.sharding.optimistic.answers import JoinVerdict, answer
from replicator.sharding.optimistic.column_order import takes
from replicator.sharding.optimistic.conflicts import SETTLED, Change
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    begin_of,
    entry_of,
)
from replicator.sharding.optimistic.shapes import Shape
from replicator.sharding.optimistic.shard_states import Action, ShardState, TargetState
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Ddl, Event, OptimisticEstate, Values, Write, value_of
from tests.simulation.optimistic_parts import Given, check_defaults, follow_members, move_values
from tests.simulation.store import BrokenError

BUCKETS = 2
Step = tuple[str, ...]
_NOWHERE = (-1, Place(-1, 0))
_Step = tuple[Ddl, Shape, Shape, JoinVerdict[str], HistoryEntry[str]]
"""A statement, the target's shapes before and after it, the answer, and its entry."""


@dataclass(slots=True)
class Part:
    """What a segment holds of the target: rows, then perhaps a statement."""

    number: int
    end: int
    complete: bool
    events: list[tuple[Place, Event]]
    given: list[Given] | None = None
    barrier: Given | None = None
    applied: bool = False

    @property
    def done(self) -> bool:
        return self.applied and self.barrier is None


@dataclass
class Follower:
    """One incarnation of a source."""

    name: str
    log: list[tuple[Place, Event]]
    next: int
    low: tuple[int, Place] | None
    version: int
    boundaries: list[int]
    parts: deque[Part] = field(default_factory=deque)
    held: set[str] = field(default_factory=set)
    asked: tuple[str, Place] | None = None
    stopping: bool = False
    number: int = 0


@dataclass
class Kept:
    """What survives a crash: the target, its watermarks, records, the saved positions."""

    rows: dict[str, Values] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    written: set[tuple[str, int]] = field(default_factory=set)
    shape: Shape | None = None
    defaults: dict[str, str] = field(default_factory=dict)
    marks: dict[tuple[str, int], tuple[int, Place]] = field(default_factory=dict)
    records: list[tuple[str, int, HistoryEntry[str]]] = field(default_factory=list)
    executed: set[tuple[str, int]] = field(default_factory=set)
    positions: dict[str, int] = field(default_factory=dict)
    lows: dict[str, tuple[int, Place]] = field(default_factory=dict)
    pending: tuple[str, int] | None = None


class OptimisticWorld:
    """The process and what it leaves behind."""

    def __init__(self, estate: OptimisticEstate) -> None:
        self.estate = estate
        self.logs = {source: estate.events(source) for source in estate.sources}
        self.kept = Kept(positions=dict.fromkeys(estate.sources, 0))
        for name, structure in estate.initial.items():
            fills: dict[str, Fill] = {}
            entry = HistoryEntry(EntryKind.MEMBER, name, ShardState(structure), fills)
            self.kept.records.append((name, -1, entry))
        self.steps_of: dict[tuple[str, int], _Step] = {}
        self.kept.shape = TargetHistory(entry for *_, entry in self.kept.records).state.joined()
        self.recover()

    def recover(self) -> None:
        """A process starts from what is kept: what was begun is finished first."""
        if self.kept.pending is not None:
            self.run_record(self.kept.pending)
            self.kept.pending = None
        self.history = self.loaded()
        self.changes: dict[str, Change[str]] = {}
        self.kept_due: dict[
            str, tuple[TargetState[str], tuple[Change[str], ...], dict[str, Place]]
        ] = {}
        self.ruled: tuple[str, Place, HistoryEntry[str], Ddl] | None = None
        self.batch: list[tuple[Follower, Part]] = []
        self.commits: list[tuple[str, int]] = []
        self.followers = {source: self.follow(source) for source in self.logs}

    def loaded(self) -> TargetHistory[str]:
        return TargetHistory(entry for *_, entry in self.kept.records)

    def follow(self, source: str) -> Follower:
        position = self.kept.positions[source]
        log = self.logs[source]
        first = next((i for i, (at, _) in enumerate(log) if at.transaction >= position), len(log))
        low = self.kept.lows.get(source)
        version = self.history.version(source)
        return Follower(source, log, first, low, version, [position])

    # Which steps there are.

    def steps(self) -> list[Step]:
        """What can happen next, crashes and interventions left out."""
        found: list[Step] = []
        for name, source in self.followers.items():
            if source.next < len(source.log) and not source.stopping and len(source.parts) < 4:
                found += [("read", name, "1"), ("read", name, "3")]
            if source.asked is None and any(part.given is None for part in source.parts):
                found.append(("deal", name))
            if source.stopping and not source.parts and source.asked is None:
                found.append(("restart", name))
            if not source.stopping and self.due(source):
                found.append(("stop", name))
        if self.ruled is not None:
            found.append(("run",))
        elif not self.batch:
            if self.history.lagging and self.level(""):
                found.append(("agree",))
            if any(self.ready(source) for source in self.followers.values()):
                found.append(("batch",))
            found += [
                ("rule", name)
                for name, source in self.followers.items()
                if source.parts and source.parts[0].applied and self.may_rule(source)
            ]
        elif self.commits:
            found += [("commit", str(index)) for index in range(len(self.commits))]
        else:
            found.append(("done",))
        return found

    def may_rule(self, source: Follower) -> bool:
        """Whether a statement may be put to the rule, or has been."""
        barrier = source.parts[0].barrier
        if barrier is None:
            return False
        key = barrier.event.member, barrier.at.transaction
        return any(key == (m, t) for m, t, _ in self.kept.records) or self.level(source.name)

    def level(self, but: str) -> bool:
        """Whether no bucket is ahead of others in rows of other sources."""
        return all(
            self.high(name) == (source.low or _NOWHERE)
            for name, source in self.followers.items()
            if name != but
        )

    def due(self, source: Follower) -> dict[str, Place]:
        if self.high(source.name) != (source.low or _NOWHERE):
            return {}
        # Asked for at each step, and most steps change nothing that it depends on.
        state, known = self.history.state, tuple(self.changes.values())
        kept = self.kept_due.get(source.name)
        if kept is None or kept[0] is not state or kept[1] != known:
            due = self.history.due(self.members(source.name), self.changes)
            kept = self.kept_due[source.name] = (state, known, due)
        return kept[2]

    def members(self, source: str) -> list[str]:
        return [name for name in self.history.state.members if name.startswith(source)]

    def high(self, source: str) -> tuple[int, Place]:
        marks = [self.kept.marks.get((source, b), _NOWHERE) for b in range(BUCKETS)]
        return max(*marks, self.kept.lows.get(source, _NOWHERE))

    @staticmethod
    def ready(source: Follower) -> list[Part]:
        """The parts that may be applied: up to the first barrier."""
        found = []
        for part in source.parts:
            if part.given is None:
                break
            if not part.applied:
                found.append(part)
            if part.barrier is not None:
                break
        return found

    # The steps.

    def do(self, step: Step) -> bool:
        """Take a step; False where it can't be taken now."""
        kind, *arguments = step
        if kind == "crash":
            self.recover()
        elif kind == "save":
            self.save()
        elif kind == "bounce":
            self.followers[arguments[0]].stopping = True
        elif kind == "say":
            return self.say(*arguments)
        elif step not in self.steps():
            return False
        else:
            self.take(step)
        return True

    def take(self, step: Step) -> None:
        """Take one of the `steps`."""
        kind, *arguments = step
        getattr(self, f"do_{kind}")(*arguments)

    def do_read(self, name: str, count: str) -> None:
        source = self.followers[name]
        events: list[tuple[Place, Event]] = []
        while source.next < len(source.log) and len(events) < int(count):
            events.append(source.log[source.next])
            source.next += 1
            if isinstance(events[-1][1], Ddl):
                break
        last = events[-1][0].transaction
        following = source.log[source.next][0] if source.next < len(source.log) else None
        complete = following is None or following.transaction != last
        source.parts.append(Part(source.number, last + 1 if complete else last, complete, events))
        source.number += 1

    def do_deal(self, name: str) -> None:
        """The group decides a segment, whose rows have all been answered for."""
        source = self.followers[name]
        part = next(part for part in source.parts if part.given is None)
        part.given = []
        release = self.history.release(name)
        for at, event in part.events:
            if event.member in source.held:
                continue
            if isinstance(event, Ddl):
                part.barrier = Given(event, at, source.version)
                source.asked = (event.member, at)
                continue
            flows = self.flows(source, release, event.member, at)
            if flows and (source.version, at) > (source.low or _NOWHERE):
                part.given.append(Given(event, at, source.version))

    def flows(self, source: Follower, release: object, member: str, at: Place) -> bool:
        return at > begin_of(self.history.release(source.name), member)

    def do_batch(self) -> None:
        places: dict[tuple[str, int], None] = {}
        for source in self.followers.values():
            for part in self.ready(source):
                self.batch.append((source, part))
                for given in part.given or ():
                    self.check_planned(given)
                    places[source.name, self.bucket_of(given)] = None
        self.commits = [*places]

    def do_commit(self, index: str) -> None:
        name, bucket = self.commits.pop(int(index))
        rows = [g for s, part in self.batch if s.name == name for g in part.given or ()]
        mark = self.kept.marks.get((name, bucket), _NOWHERE)
        for given in rows:
            if self.bucket_of(given) == bucket and (given.version, given.at) > mark:
                self.apply(name, given)
        end = max((given.version, given.at) for given in rows)
        self.kept.marks[name, bucket] = max(mark, end)

    def bucket_of(self, given: Given) -> int:
        """The bucket of a row, which depends on the keys that the target has."""
        assert isinstance(given.event, Write)
        assert self.kept.shape is not None
        return (sum(map(ord, given.event.key)) + len(self.kept.shape.keys)) % BUCKETS

    def do_done(self) -> None:
        for source, part in self.batch:
            part.applied = True
            if part.given:
                source.low = (part.given[-1].version, part.given[-1].at)
        self.batch = []
        for source in self.followers.values():
            self.advance(source)

    def advance(self, source: Follower) -> None:
        while source.parts and source.parts[0].done:
            part = source.parts.popleft()
            if part.complete:
                source.boundaries.append(part.end)
                # Only those that an open statement may need.
                first = min((at.transaction for at in self.open(source.name)), default=part.end)
                before = [b for b in source.boundaries if b <= first]
                source.boundaries = [max(before), *(b for b in source.boundaries if b > first)]

    def open(self, source: str) -> list[Place]:
        """The places of open statements: the saved position stays before them."""
        members = self.history.state.members
        return [
            found.at for name in self.members(source) if (found := members[name].open) is not None
        ]

    def save(self) -> None:
        for name, source in self.followers.items():
            first = min((at.transaction for at in self.open(name)), default=1 << 30)
            self.kept.positions[name] = max(b for b in source.boundaries if b <= first)
            self.save_low(name, source)

    def save_low(self, name: str, source: Follower) -> None:
        if source.low is not None:
            self.kept.lows[name] = source.low

    def do_rule(self, name: str) -> None:
        """The writer puts a statement to the rule, and saves the answer; it runs nothing yet."""
        self.save_floors()
        source = self.followers[name]
        barrier = source.parts[0].barrier
        assert barrier is not None
        assert isinstance(barrier.event, Ddl)
        ddl, at = barrier.event, barrier.at
        saved = next(
            (e for m, t, e in self.kept.records if (m, t) == (ddl.member, at.transaction)), None
        )
        change = self.change_of(ddl, at)
        if saved is not None:
            if saved.kind is EntryKind.OPEN:
                self.changes[ddl.member] = change
            self.heard(source, ddl.member, at)
            return
        self.changes[ddl.member] = change
        verdict = answer(self.history.state, change)
        entry = entry_of(ddl.member, verdict, ())
        self.ruled = (name, at, entry, ddl)
        self.record(ddl, at, entry, verdict)

    def save_floors(self) -> None:
        self.save()

    def change_of(self, ddl: Ddl, at: Place) -> Change[str]:
        shard_state = self.history.state.members.get(ddl.member)
        opened = shard_state.open if shard_state is not None else None
        action = opened.action if opened is not None else None
        return Change(
            ddl.member, at, ddl.text, ddl.text, ddl.before, ddl.after, ddl.touches, action=action
        )

    def record(
        self,
        ddl: Ddl,
        at: Place,
        entry: HistoryEntry[str],
        verdict: JoinVerdict[str],
    ) -> None:
        """The answer is saved; what it does to the target is known by its record."""
        key = (ddl.member, at.transaction)
        self.kept.records.append((*key, entry))
        before, after = verdict.before, verdict.after
        if entry.kind is EntryKind.TAKEN and before is not None and after is not None:
            self.steps_of[key] = (ddl, before, after, verdict, entry)
            self.kept.pending = key

    def run_record(self, key: tuple[str, int]) -> None:
        """The step of a record, once: the fingerprint tells whether it ran before a crash."""
        if key in self.kept.executed:
            return
        self.kept.executed.add(key)
        ddl, before, after, verdict, entry = self.steps_of[key]
        own, carried = verdict.own, {}
        for given in verdict.given:
            if given.adds:
                carried[given.new] = given.old
            else:
                move_values(given, self.kept.rows.values())
        if own and ddl.renamed is not None:
            carried[ddl.renamed[1]] = ddl.renamed[0]
        assert self.kept.shape is not None
        new = after.columns.keys() - before.columns.keys()
        gone = before.columns.keys() - after.columns.keys()
        for values in self.kept.rows.values():
            former = dict(values)
            for name in gone:
                values.pop(name, None)
            for name in new:
                fill = (entry.fills or {})[name].sql
                values[name] = former[carried[name]] if name in carried else fill
        self.kept.shape = after
        assert ddl.after is not None
        for name in new:
            self.kept.defaults[name] = value_of(ddl.after, name)
        if own and ddl.text.startswith(("default", "widen")):
            for column in ddl.after.columns:
                self.kept.defaults[folded(column.name)] = value_of(ddl.after, column.name)
        self.check_keys()

    def do_run(self) -> None:
        """What the answer says is executed, and its record is done."""
        assert self.ruled is not None
        name, at, entry, ddl = self.ruled
        if self.kept.pending is not None:
            self.run_record(self.kept.pending)
            self.kept.pending = None
        self.ruled = None
        self.history.take(entry)
        self.check_joined()
        self.heard(self.followers[name], ddl.member, at)

    def do_agree(self) -> None:
        """The target gets what all members have, and its record is done."""
        entry = follow_members(self.history, self.kept.defaults)
        self.kept.records.append((entry.member, -1, entry))
        self.history.take(entry)

    def heard(self, source: Follower, member: str, at: Place) -> None:
        """The barrier is passed, and the group hears the answer."""
        source.parts[0].barrier = None
        source.asked = None
        opened = self.history.state.members[member].open
        if opened is not None and opened.at == at and not opened.released:
            source.held.add(member)
        self.advance(source)

    def do_stop(self, name: str) -> None:
        self.followers[name].stopping = True

    def do_restart(self, name: str) -> None:
        """Nothing of the source is under way: releases are saved, and it starts anew."""
        source = self.followers[name]
        self.save()
        due = self.due(source)
        if due:
            self.release(source, due)
        self.followers[name] = self.follow(name)

    def release(self, source: Follower, due: dict[str, Place]) -> None:
        released = self.history.next_release(source.name, due, source.low)
        entry = HistoryEntry(
            EntryKind.RELEASED,
            min(due),
            granted=tuple(due),
            source=source.name,
            release=released,
        )
        gone = {(member, at.transaction) for member, at in due.items()}
        # They are answered anew; what was said then stays in the history.
        self.kept.records = [
            (member, -2 - at if (member, at) in gone else at, e)
            for member, at, e in self.kept.records
        ]
        self.kept.records.append((min(due), -1, entry))
        self.history = self.loaded()

    def say(self, which: str, action: str) -> bool:
        """The operator answers an open statement."""
        members = self.history.state.members
        found = [
            name
            for name, shard_state in sorted(members.items())
            if (opened := shard_state.open) is not None
            and not (opened.granted or opened.released or opened.action)
            and opened.conflict in SETTLED[Action(action)]
        ]
        if not found or self.ruled is not None:
            return False
        name = found[int(which) % len(found)]
        entry: HistoryEntry[str] = HistoryEntry(EntryKind.SAID, name, action=Action(action))
        self.kept.records.append((name, -1, entry))
        self.history.take(entry)
        return True

    # What must hold.

    def check_planned(self, given: Given) -> None:
        """A row that is not below a watermark has a place for each of its values."""
        assert isinstance(given.event, Write)
        assert self.kept.shape is not None
        lacking = [c for c, _ in given.event.values if c not in self.kept.shape.columns]
        if lacking:
            raise BrokenError(f"{given} can't be planned: the target lacks {lacking}")

    def apply(self, source: str, given: Given) -> None:
        """A row comes to the target."""
        event = given.event
        assert isinstance(event, Write)
        name = f"row {event.key}, write {event.number}, at {given.at} of {source}"
        if (event.member, event.number) in self.kept.written:
            raise BrokenError(f"{name} is applied twice")
        if self.kept.numbers.get(event.key, 0) > event.number:
            raise BrokenError(f"{name} is applied after a later one")
        assert self.kept.shape is not None
        columns = self.kept.shape.columns
        lacking = [column for column, _ in event.values if column not in columns]
        if lacking:
            raise BrokenError(f"{name} has {lacking}, which the target lacks")
        self.check_types(name, event, given.at)
        self.kept.written.add((event.member, event.number))
        self.kept.numbers[event.key] = event.number
        own = dict(event.values)
        if event.insert:
            fills = {c: self.fill(c) for c in columns if c not in own and c != "id"}
            self.kept.rows[event.key] = own | fills
        else:
            former = dict(self.kept.rows[event.key])
            self.update(event.key, own)
            changed = [c for c, v in self.kept.rows[event.key].items() if former.get(c) != v]
            if not own.keys() >= set(changed):
                raise BrokenError(f"{name} changes {changed}, and its shard has {sorted(own)}")
        self.check_keys()

    def update(self, key: str, own: Values) -> None:
        self.kept.rows[key] |= own

    def fill(self, column: str) -> str:
        return self.history.state.fills[column].sql

    def check_types(self, name: str, event: Write, at: Place) -> None:
        structure = self.estate.initial[event.member]
        for place, other in self.logs[event.member[0]]:
            if place >= at:
                break
            if isinstance(other, Ddl) and other.member == event.member and other.after:
                structure = other.after
        shard_state = self.history.state.members[event.member]
        assert self.kept.shape is not None
        ceded = {
            n for s in self.history.state.members.values() for n in s.ceded
        } | shard_state.ceded
        for column in structure.columns:
            there = self.kept.shape.columns[column.name].column
            if column.name not in ceded and not takes(there, column):
                raise BrokenError(f"{name}: {column} is wider than {there}")

    def check_keys(self) -> None:
        assert self.kept.shape is not None
        if frozenset("b") in self.kept.shape.unique:
            values = [row["b"] for row in self.kept.rows.values() if not row["b"].isalpha()]
            if len(set(values)) < len(values):
                raise BrokenError("a key of the target refuses rows that no shard's key refuses")

    def check_joined(self) -> None:
        now = self.history.state.joined()
        assert now is not None
        assert self.kept.shape is not None
        lacking = now.columns.keys() - self.kept.shape.columns.keys()
        if lacking:
            raise BrokenError(f"the target lacks {lacking} behind a step")

    def check_flow(self, name: str) -> None:
        """Whatever the others do, the rows of a source's members that are not held are applied."""
        held: dict[str, Place] = {}
        for member in self.members(name):
            opened = self.history.state.members[member].open
            if opened is not None:
                held[member] = opened.at
        for at, event in self.logs[name]:
            if not isinstance(event, Write) or at > held.get(event.member, Place(1 << 30, 0)):
                continue
            if (event.member, event.number) not in self.kept.written:
                raise BrokenError(f"{event} at {at} waits for another source")

    def check_end(self, *, answered: bool) -> None:
        for name in self.logs:
            self.check_flow(name)
        members = self.history.state.members
        if any(shard_state.open for shard_state in members.values()):
            if self.estate.converging and not answered:
                kinds = {s.open.conflict for s in members.values() if s.open}
                # What else is open waits for one of these.
                if not kinds & {"stale", "fill", "type"}:
                    raise BrokenError(f"alike in the end, and open: {kinds}")
            return
        for shard in self.estate.shards:
            if members[shard.name].taken != shard.table:
                raise BrokenError(f"{shard.name} is not taken as it is")
        if answered:
            return
        assert self.kept.shape is not None
        if len({shard.table for shard in self.estate.shards}) > 1:
            return
        check_defaults(self.kept.defaults, self.estate.shards[0].table)
        for shard in self.estate.shards:
            for key, values in shard.rows.items():
                if self.kept.rows.get(key) != values:
                    raise BrokenError(f"row {key} is {self.kept.rows.get(key)}, not {values}")

"""A model of the actors around the version rule, in steps that a schedule or a crash may part.

The groups, the locks and the resume positions are those of production. What is modelled is how
they are used: segments, mailboxes, batches over buckets, checkpoints, write-ahead records.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from actors.writing.segment_tracker import Boundary, Resume
from replicator.sharding.hold import HeldPart
from replicator.sharding.items import Item, RowDecision, Template
from replicator.sharding.open_locks import UnlockError
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary
from tests.simulation.estate import (
    BEGINNING,
    Alter,
    Create,
    Drop,
    Estate,
    Event,
    Rename,
    Row,
    shape,
)
from tests.simulation.incarnation import Segment, Source
from tests.simulation.store import BrokenError, Forwarded, RefusedError, Saved, new_store

BUCKETS = 2
Step = tuple[str, ...]


class World:
    """The process and what it leaves behind in the store."""

    def __init__(self, estate: Estate) -> None:
        self.estate = estate
        self.store = new_store(estate)
        self.logs = {source: binlog.events() for source, binlog in estate.binlogs.items()}
        self.recover()

    def recover(self) -> None:
        """A process starts from the store."""
        self.batch: list[Segment] = []
        self.commits: list[tuple[str, str, int]] = []
        self.batch_sources: list[tuple[str, Segment]] = []
        self.unsaved: set[str] = set()
        self.locks: dict[str, TargetLock[str, None]] = {}
        self.sources: dict[str, Source] = {}
        for target, table in self.store.tables.items():
            table.recover()
            self.locks[target] = TargetLock(
                target,
                self.logs,
                tuple(table.recorded),
                {source: tuple(cutovers) for source, cutovers in table.cutovers.items()},
                table.pending,
            )
        for name in self.logs:
            self.start(name, self.store.saved[name])

    def start(self, name: str, saved: Saved) -> None:
        """A source starts from its checkpoint."""
        log = self.logs[name]
        first = next((i for i, (at, _) in enumerate(log) if at.transaction >= saved.key), len(log))
        source = self.sources[name] = Source(
            name,
            log,
            first,
            dict(saved.states),
            dict(saved.low_watermarks),
            {},
            Resume(Boundary(saved.key, dict(saved.states))),
            end=saved.key,
        )
        for target, lock in self.locks.items():
            table = self.store.tables[target]
            watermarks = [table.watermark(name, bucket) for bucket in range(BUCKETS)]
            applied = [at for version, at in watermarks if version == lock.version]
            source.groups[target] = lock.start(
                name, saved.states[target], boundary(saved.key), max(applied, default=None)
            )
            source.mail[target] = deque()
            self.note_cutover(source, target)

    # Which steps there are.

    def steps(self) -> list[Step]:
        """What can happen next, crashes and interventions left out."""
        found: list[Step] = []
        for name, source in self.sources.items():
            if source.next < len(source.log) and not source.stopping:
                found += [("read", name, "1"), ("read", name, "3"), ("read", name, "9")]
            found += [("deal", name, target) for target, mail in source.mail.items() if mail]
            if source.stopping and source.drained:
                found.append(("restart", name))
        if not self.batch_sources:
            if any(self.takes(1)):
                found += [("batch", "1"), ("batch", "9")]
        elif self.commits:
            found += [("commit", str(index)) for index in range(len(self.commits))]
        else:
            found.append(("done",))
        for target, lock in self.locks.items():
            found += self.lock_steps(target, lock)
        return found

    def lock_steps(self, target: str, lock: TargetLock[str, None]) -> list[Step]:
        table = self.store.tables[target]
        found: list[Step] = []
        if lock.agreed:
            found.append(("resolve", target))
        if target in self.unsaved:
            found.append(("record", target))
        elif table.pending and len(table.executed) > len(table.recorded):
            found.append(("finish", target))
        elif table.pending and lock.may_execute and self.barrier(target):
            found.append(("execute", target))
        for name, source in self.sources.items():
            group = source.groups[target]
            lags = group.known < lock.version and not source.stopping
            waits = target in source.asked or (group.can_release and not source.whole)
            if lags and (group.can_adopt or not waits):
                found.append(("tell", name, target))
        return found

    def barrier(self, target: str) -> bool:
        """Whether the writer has applied what was forwarded before the cutovers."""
        return all(
            segment.number > source.cutover_segments[target][1]
            for source in self.sources.values()
            for segment in source.segments
            if not segment.applied
        )

    def takes(self, count: int) -> list[list[Segment]]:
        """Whole segments in order, up to ``count`` of each source."""
        taken = []
        for source in self.sources.values():
            segments: list[Segment] = []
            for segment in source.segments:
                if segment.applied:
                    continue
                if not segment.whole or len(segments) == count:
                    break
                segments.append(segment)
            taken.append(segments)
        return taken

    # The steps.

    def do(self, step: Step) -> bool:
        """Take a step; False where it can't be taken now."""
        kind, *arguments = step
        if kind == "crash":
            self.recover()
        elif kind == "save":
            self.save(self.sources)
        elif kind == "bounce":
            self.sources[arguments[0]].stopping = True
        elif kind == "drop":
            self.sources[arguments[0]].groups[arguments[1]].buffer.drop()
        elif kind == "unlock":
            return self.unlock(*arguments)
        elif step not in self.steps():
            return False
        else:
            getattr(self, f"do_{kind}")(*arguments)
        return True

    def do_read(self, name: str, count: str) -> None:
        """The reader deals a segment of up to ``count`` events out to the groups."""
        source = self.sources[name]
        events: list[tuple[Place, Event]] = []
        while source.next < len(source.log) and len(events) < int(count):
            events.append(source.log[source.next])
            source.next += 1
            if not isinstance(events[-1][1], Row):
                break
        following = source.log[source.next][0] if source.next < len(source.log) else None
        last = events[-1][0].transaction
        complete = following is None or following.transaction != last
        parts: dict[str, list[tuple[Place, Event]]] = {}
        for at, event in events:
            parts.setdefault(event.target, []).append((at, event))
        segment = Segment(source.number, frozenset(parts), last + 1 if complete else last, complete)
        source.number += 1
        source.whole = complete
        source.segments.append(segment)
        for target, part in parts.items():
            source.mail[target].append((segment, part))

    def do_deal(self, name: str, target: str) -> None:
        """A group decides its part of a segment."""
        source = self.sources[name]
        group = source.groups[target]
        segment, events = source.mail[target].popleft()
        if segment.release:
            self.release(source, target, segment)
            return
        forwarded = []
        for at, event in events:
            if isinstance(event, Row):
                decision = group.row(event.member, at)
                state = group.members[event.member]
                behind = (group.known, at) > source.low_watermarks.get(target, (0, BEGINNING))
                lacking = len({*state.awaited, *state.optional})
                given = Forwarded(event, at, state.version, state.since, lacking)
                if decision is RowDecision.APPLY and behind:
                    forwarded.append(replace(given, version=group.known))
                elif decision is RowDecision.HOLD:
                    group.buffer.add(state.version, HeldPart(given, 1, 1))
            else:
                self.statement(source, group, at, event)
            self.note_cutover(source, target)
        segment.parts[target] = (forwarded, group.state)
        self.locks[target].look()

    def release(self, source: Source, target: str, segment: Segment) -> None:
        """A group fills a segment with the rows of its next version that it has held."""
        group = source.groups[target]
        source.asked.discard(target)
        forwarded: list[Forwarded] = []
        if group.known < self.locks[target].version and group.can_release:
            forwarded = group.release()
            if forwarded:
                source.released[target, group.known] = segment
        self.note_cutover(source, target)
        segment.parts[target] = (forwarded, group.state)
        self.locks[target].look()

    def statement(self, source: Source, group: Group[str, None], at: Place, event: Event) -> None:
        if isinstance(event, Alter):
            given = self.given(group, event)
            item = Item(event.text, (event.text,), event.member, at, None)
            recorded = group.ddl(item)
            if given and not recorded.awaited:
                raise BrokenError(f"{event} at {at} was given to it by an unlock already")
        elif isinstance(event, Create):
            self.create(source, group, at, event)
        elif isinstance(event, Drop):
            group.leave(event.member, at)
        elif isinstance(event, Rename):
            group.rename(event.member, event.new, at)

    def create(self, source: Source, group: Group[str, None], at: Place, event: Create) -> None:
        """A table joins like the first that it fits; where that is none, it is ahead."""
        fitting = [
            template
            for template in group.templates(at)
            if self.texts_like(source, group, template, at) == shape(event.texts)
        ]
        if fitting:
            group.join(event.member, at, fitting[0], fitting)
        elif self.estate.reckless:
            raise RefusedError(f"{event} at {at} is like nothing")
        else:
            group.join_ahead(event.member, at)

    def texts_like(
        self, source: Source, group: Group[str, None], template: Template[str], at: Place
    ) -> tuple[str, ...] | None:
        """The structure of what a created table may be like; None where it is not known."""
        if template.member is not None:
            return shape(self.texts_of(source, template.member, at))
        lock = self.locks[group.target]
        if template.version > lock.version:
            return None
        items = lock.history[: template.version]
        return shape(tuple(item.text for item in items if not item.skipped))

    def given(self, group: Group[str, None], event: Alter) -> bool:
        """Whether an unlock has put the member where this statement brings it."""
        lock = self.locks[group.target]
        history = [*lock.history, *([lock.pending.resolved] if lock.pending else [])]
        awaited = group.members[event.member].awaited
        return any(history[version - 1].text == event.text for version in awaited)

    def texts_of(self, source: Source, name: str, at: Place) -> tuple[str, ...]:
        """What has made a member's structure before a place: as the registry would say."""
        texts: dict[str, tuple[str, ...]] = {}
        for place, event in source.log:
            if place >= at:
                break
            if isinstance(event, Alter):
                texts[event.member] = (*texts.get(event.member, ()), event.text)
            elif isinstance(event, Create):
                texts[event.member] = event.texts
            elif isinstance(event, Rename):
                texts[event.new] = texts.pop(event.member, ())
        return texts.get(name, ())

    def note_cutover(self, source: Source, target: str) -> None:
        """Up to which segment a group had forwarded rows when it passed its newest cutover."""
        base = source.groups[target].base
        if source.cutover_segments.get(target, (-1, -1))[0] != base:
            source.cutover_segments[target] = (base, source.number - 1)

    def do_batch(self, count: str) -> None:
        """A job starts: the segments of all sources, by bucket."""
        places: dict[tuple[str, str, int], None] = {}
        for source, segments in zip(self.sources.values(), self.takes(int(count)), strict=True):
            for segment in segments:
                self.batch_sources.append((source.name, segment))
                for target, (rows, _) in segment.parts.items():
                    for row in rows:
                        places[source.name, target, row.row.number % BUCKETS] = None
        self.commits = list(places)

    def do_commit(self, index: str) -> None:
        """One bucket is committed."""
        name, target, bucket = self.commits.pop(int(index))
        rows = [
            row
            for source, segment in self.batch_sources
            if source == name and target in segment.parts
            for row in segment.parts[target][0]
        ]
        end = max((row.version, row.at) for row in rows)
        own = [row for row in rows if row.row.number % BUCKETS == bucket]
        self.store.tables[target].commit(name, bucket, own, end, orderly=self.estate.orderly)

    def do_done(self) -> None:
        """The job is done: resume positions and low_watermarks move on."""
        for name, segment in self.batch_sources:
            segment.applied = True
            source = self.sources[name]
            for target, (rows, _) in segment.parts.items():
                if rows:
                    source.low_watermarks[target] = (rows[-1].version, rows[-1].at)
        self.batch_sources = []
        for source in self.sources.values():
            while source.segments and source.segments[0].applied:
                segment = source.segments.popleft()
                source.end = segment.end
                if segment.complete:
                    source.states |= {target: part[1] for target, part in segment.parts.items()}
                    source.resume.applied(
                        Boundary(segment.end, dict(source.states)), source.open_items
                    )

    def save(self, names: dict[str, Source]) -> None:
        for name, source in names.items():
            found = source.resume.boundary(source.open_items())
            self.store.saved[name] = Saved(found.key, found.state, dict(source.low_watermarks))

    def do_resolve(self, target: str) -> None:
        self.locks[target].resolve(self.resumes())
        self.decided(target)

    def resumes(self) -> dict[str, Place]:
        return {
            name: boundary(source.resume.boundary(source.open_items()).key)
            for name, source in self.sources.items()
        }

    def decided(self, target: str) -> None:
        self.unsaved.add(target)
        for source in self.sources.values():
            self.note_cutover(source, target)

    def unlock(self, target: str, choice: str, action: str) -> bool:
        """The operator forces a lock."""
        lock = self.locks[target]
        having = [(s, item.member) for s in self.logs for item in lock.candidates(s)]
        if not having:
            return False
        owner, member = having[int(choice) % len(having)]
        try:
            lock.unlock(self.resumes(), owner=owner, member=member, skip=action == "skip")
        except UnlockError:
            return False
        self.decided(target)
        return True

    def do_record(self, target: str) -> None:
        """The decision and the cutovers are saved, in one transaction."""
        table = self.store.tables[target]
        table.pending = self.locks[target].pending
        assert table.pending is not None
        for source, cutover in table.pending.cutovers.items():
            table.cutovers.setdefault(source, []).append(cutover)
        self.unsaved.discard(target)

    def do_execute(self, target: str) -> None:
        table = self.store.tables[target]
        assert table.pending is not None
        table.execute(table.pending)

    def do_finish(self, target: str) -> None:
        self.store.tables[target].finish()
        self.locks[target].executed()

    def do_tell(self, name: str, target: str) -> None:
        """A source hears of the new version: it takes it over, with held rows, or will restart."""
        source = self.sources[name]
        group = source.groups[target]
        if group.can_adopt:
            group.adopt()
            self.locks[target].look()
        elif group.can_release:
            source.asked.add(target)
            end = source.segments[-1].end if source.segments else source.end
            segment = Segment(source.number, frozenset((target,)), end, complete=True, release=True)
            source.number += 1
            source.segments.append(segment)
            source.mail[target].append((segment, []))
        else:
            source.stopping = True

    def do_restart(self, name: str) -> None:
        """A source is drained: it is saved, and restarts from what is saved."""
        self.save({name: self.sources[name]})
        for lock in self.locks.values():
            lock.stop(name)
        self.start(name, self.store.saved[name])
        for lock in self.locks.values():
            lock.look()

    # The end.

    def check_end(self) -> None:
        """Nothing can happen any more: everything must be there."""
        groups = [group for source in self.sources.values() for group in source.groups.values()]
        if not self.estate.orderly and any(group.ahead for group in groups):
            raise RefusedError("a table is like nothing that its target has come to be")
        for target, table in self.store.tables.items():
            if self.locks[target].view() is not None or table.pending:
                raise BrokenError(f"{target} waits for ever: {self.locks[target].view()}")
        applied: dict[tuple[int, int], int] = {}
        for table in self.store.tables.values():
            applied.update(table.rows)
        for row in self.estate.rows():
            if applied.get((row.shard, row.number)) != 1:
                raise BrokenError(f"{row} is lost")
        for source in self.sources.values():
            held = [group.rows_held for group in source.groups.values() if group.rows_held]
            if held or source.open_items():
                raise BrokenError(f"{source.name} still holds rows")

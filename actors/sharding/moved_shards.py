"""The shards that a RENAME gives another target: those that have moved, and those that wait.

A target has the rows of all its shards, so it is renamed when all of them have made the RENAME, in
any order. Until then a shard that has made it is read no further under either name (the saved
position stays before the statement), and the other shards go on.

A table that is read has a *life*: 0, or the number of the renaming that its rows waited for. When
a target was renamed, it had all rows that were read before, except those of the tables of this
life or a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass

import anyio
import numpy as np
import structlog
from attrs import define, field

from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.downstream.meta.moved_shards import AHEAD, MovedShard, Renaming, TableLife
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.watermark import Place


@dataclass(frozen=True, slots=True)
class VersionBounds:
    """The versions of a target that a table may have joined at.

    Attributes:
        floor: before it, the target was another table.
        end: the version at which the target got another name after the table had joined, if it did.
        entered: the version that the target had when the rows of the table came to it by a RENAME,
            if they did.
    """

    floor: int
    end: int | None
    entered: int | None


WAITING = 1 << 62
"""The life of a table whose rows wait: its renaming has no number yet."""


@dataclass(frozen=True, slots=True)
class WaitingShard:
    """A shard that has made a RENAME, while others of its target have not.

    Attributes:
        name: that the statement gives the shard.
        epoch: the run of its source that has read the statement; a later run reads it again.
        statement: the event.
        joins: whether the operator has moved its rows, so that it does not wait for other shards.
    """

    move: MovedShard
    name: TableName
    epoch: int
    statement: Statement
    joins: bool = False


@define(eq=False)
class MovedShards:
    """All shards of a task that a RENAME gives another target.

    ``_renamings``: of the task so far, in their order. ``_awaited``: the former and the new
    targets of shards that wait, or have waited in earlier generations and are read again, by shard
    and place of each of their moves. ``_joined``: the tables, with the places of their statements,
    that have joined a target without waiting; a source that is read again comes to them a second
    time.
    """

    _renamings: Sequence[Renaming] = ()
    _awaited: dict[tuple[Member, int], tuple[TableName, TableName]] = field(factory=dict)
    _joined: set[tuple[Member, int]] = field(factory=set)
    _numbers: dict[tuple[Member, int], int] = field(factory=dict, init=False)
    _ahead: dict[tuple[Member, int], int] = field(factory=dict, init=False)
    _until: dict[tuple[str, TableName], list[tuple[int, int]]] = field(factory=dict, init=False)
    _versions: dict[tuple[str, TableName, int], int] = field(factory=dict, init=False)
    _entered: dict[tuple[TableName, int], int] = field(factory=dict, init=False)
    _lives: dict[Member, list[tuple[int, int]]] = field(factory=dict, init=False)
    _begun: list[TableLife] = field(factory=list, init=False)
    _waiting: dict[tuple[Member, int], WaitingShard] = field(factory=dict, init=False)
    _touched: dict[tuple[str, TableName], int] = field(factory=dict, init=False)
    _leaving: set[tuple[str, TableName]] = field(factory=set, init=False)
    _ties: set[tuple[str, TableName, TableName]] = field(factory=set, init=False)
    _changed: anyio.Event = field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        for renaming in self._renamings:
            for shard in (*renaming.moved, *renaming.joined):
                self._numbers[shard.member, shard.place] = renaming.number
                self.settle(shard.member, shard.place)
            for shard in renaming.ahead:
                self._ahead[shard.member, shard.place] = AHEAD - shard.version
            for until in renaming.until:
                if not until.source:
                    self._entered[until.target, renaming.number] = until.version
                    continue
                found = self._until.setdefault((until.source, until.target), [])
                found.append((renaming.number, until.place))
                self._versions[until.source, until.target, renaming.number] = until.version
            for life in renaming.lives:
                self._lives.setdefault(life.member, []).append((life.place, life.number))

    def number(self, member: Member, place: int) -> int:
        """The number of the renaming with which a shard has moved by its RENAME at a place, or 0.

        This includes shards that have joined their new target without one.
        """
        return self._numbers.get((member, place), 0)

    def bounds(self, source: str, effect: Effect, place: int) -> VersionBounds:
        """The versions of a target that the table of an effect may have joined at."""
        member = Member(source, effect.table)
        former = effect.renamed_to if effect.kind is EffectKind.MOVE_IN else effect.table
        entered = self.entered(effect.target, Member(source, former), place) if former else None
        floor = self.floor(effect.target, member, place)
        return VersionBounds(floor, self.end(effect.target, member, place), entered)

    def entered(self, target: TableName, member: Member, place: int) -> int | None:
        """The version that a target had when a shard came to it by its statement at a place.

        ``member``: by its name before. None if it has joined without a record.
        """
        number = self.number(member, place)
        return self._entered.get((target, number)) if number else None

    def last_end(self, target: TableName) -> int:
        """The version at which the last target that had this name has lost it; 0 if none has."""
        shards = (shard for renaming in self._renamings for shard in renaming.shards)
        return max((shard.version for shard in shards if shard.former == target), default=0)

    @property
    def renamings(self) -> Sequence[Renaming]:
        """The renamings of the task so far, in their order."""
        return self._renamings

    def ahead(self, member: Member, place: int) -> int | None:
        """The version of its target while the rows of a created shard were held, if they were."""
        return self._ahead.get((member, place))

    def note_ahead(self, member: Member, place: int, version: int) -> None:
        """Note that the rows of a created shard are held while its target has a version."""
        self._ahead[member, place] = version

    def lacks_record(self, member: Member, place: int, version: int, *, fits: bool) -> bool:
        """Whether a created shard must not join its target at a version before that is recorded.

        Its rows were held, so rows of other shards have moved the watermarks of this version past
        them.

        Args:
            member: the shard.
            place: of its CREATE TABLE.
            version: of the target.
            fits: whether it fits the target at this version.
        """
        if self.number(member, place):
            return False
        held = self.ahead(member, place)
        return version <= held if held is not None else not fits

    def follows(self, member: Member, place: int) -> bool:
        """Whether the target of a shard follows its RENAME at a place, now or later."""
        key = member, place
        if key in self._waiting:
            return not self._waiting[key].joins
        return any(
            key == (shard.member, shard.place)
            for renaming in self._renamings
            for shard in renaming.shards
        )

    def wait(self, shard: WaitingShard) -> None:
        """Note that a shard waits for the others of its target, or for joining its new one."""
        move = shard.move
        if not shard.joins and (move.member, move.place) not in self._waiting:
            structlog.get_logger().info(
                "target.waits-for-name",
                source=move.member.source,
                member=str(move.member.name),
                target=str(move.former),
                to=str(move.target),
                statement=shard.statement.sql[:2000],
            )
        self._waiting[move.member, move.place] = shard
        self._awaited[move.member, move.place] = move.former, move.target
        self._changed.set()

    def follow(self, move: MovedShard) -> None:
        """Note that a shard which waits already moves on, to the target of a later statement."""
        self._awaited[move.member, move.place] = move.former, move.target

    def join(self, member: Member, target: TableName, epoch: int, statement: Statement) -> None:
        """Note that a created shard waits for joining its target as the operator wants.

        Its rows were held, so those of other shards have moved the watermarks past them.
        """
        place = statement.transaction
        move = MovedShard(member, place, target, target)
        self.wait(WaitingShard(move, member.name, epoch, statement, joins=True))
        self.begin(member, place, WAITING)

    def end_wait(self, member: Member, place: int) -> None:
        """Note that a table does not wait from a place on, if its name was that of one that did."""
        begun = [life for life in self._begun if life.member == member and life.place < place]
        if begun and begun[-1].number == WAITING:
            self.begin(member, place, self.life(member, place))

    def rename(self, source: str, old: TableName, new: TableName, place: int) -> None:
        """Note the new name of a table that may wait for joining its target."""
        former, renamed = Member(source, old), Member(source, new)
        begun = [life.number for life in self._begun if life.member == former]
        self.end_wait(renamed, place)
        if begun and begun[-1] == WAITING:
            self.begin(renamed, place, WAITING)
            self.end_wait(former, place)

    @property
    def waiting(self) -> Sequence[WaitingShard]:
        """The shards that wait for others."""
        return [shard for shard in self._waiting.values() if not shard.joins]

    @property
    def joining(self) -> Sequence[WaitingShard]:
        """The shards whose rows the operator has moved, and which have not joined yet."""
        return [shard for shard in self._waiting.values() if shard.joins]

    def tie(self, source: str, target: TableName, former: TableName) -> None:
        """Note that foreign keys tie a table to a renamed shard: both are read no further.

        Args:
            source: of both.
            target: of the table.
            former: the former target of the shard.
        """
        self._ties.add((source, target, former))

    def in_circle(self, target: TableName, sources: Mapping[TableName, Collection[str]]) -> bool:
        """Whether a target waits for its own renaming, by way of those of others.

        Args:
            target: one that shards wait to leave.
            sources: of each such target, the sources of the shards that it still has.
        """
        reached: set[TableName] = set()
        left = [target]
        while left:
            one = left.pop()
            new = {
                former
                for source, tied, former in self._ties
                if tied == one and source in sources.get(one, ()) and former != one
            }
            left += new - reached
            reached |= new
        return target in reached

    def touch(self, source: str, target: TableName, place: int, *, leaves: bool) -> None:
        """Note that a table of a target waits for the renaming of another.

        Args:
            source: of the table.
            target: of the table.
            place: of its statement.
            leaves: whether the table then gets another target.
        """
        self._touched.setdefault((source, target), place)
        if leaves:
            self._leaving.add((source, target))

    @property
    def touched(self) -> Set[TableName]:
        """The targets of which a table waits, for whatever reason.

        Rows of other shards move the watermarks of the target past those that are read later.
        """
        return {target for _, target in self._touched}

    @property
    def targets(self) -> Set[TableName]:
        """The targets that shards wait to leave, or to come to."""
        moves = [shard.move for shard in self._waiting.values()]
        return {name for move in moves for name in (move.former, move.target)} | self.touched

    async def next_waiting(self) -> None:
        """Wait until a shard waits."""
        if not self._waiting:
            self._changed = anyio.Event()
            await self._changed.wait()

    def places(self, source: str) -> Collection[Place]:
        """The places that the saved position of a source stays before: when a target has moved, the
        task reads the RENAME again, and what waited for it, on other sources, too."""
        moves = (shard.move for shard in self._waiting.values())
        places = [move.place for move in moves if move.member.source == source]
        places += [place for (of, _), place in self._touched.items() if of == source]
        return [Place(place, 0) for place in places]

    def is_awaited(self, target: TableName) -> bool:
        """Whether shards wait to come to a target, or have waited before their source restarted."""
        return any(target == to for _, to in self._awaited.values())

    def was_left(self, target: TableName) -> bool:
        """Whether shards wait to leave a target, or have waited before their source restarted."""
        left = any(target == former != to for former, to in self._awaited.values())
        return left or self.is_left(target)

    def note_joined(self, member: Member, place: int) -> None:
        """Note that a created table joins its target without waiting."""
        self._joined.add((member, place))

    def has_joined(self, member: Member, place: int) -> bool:
        """Whether a table created at a place has joined its target, in this run or an earlier one.

        Whether it may is asked once: the answer depends on how far the other sources are read.
        """
        return (member, place) in self._joined

    def settle(self, member: Member, place: int) -> None:
        """Note that a shard does not wait with its RENAME at a place."""
        self._awaited.pop((member, place), None)

    def is_left(self, target: TableName) -> bool:
        """Whether shards of a target wait to leave it."""
        former = {shard.move.former for shard in self.waiting}
        return target in former | {left for _, left in self._leaving}

    def begin(self, member: Member, place: int, life: int) -> None:
        """Note that a table waits from a place on, or has another life."""
        self._begun.append(TableLife(member, place, life))

    def restart(self, source: str) -> None:
        """Note that a source is read again from an earlier position."""
        self._begun = [life for life in self._begun if life.member.source != source]
        self._touched = {key: at for key, at in self._touched.items() if key[0] != source}
        self._leaving = {(s, target) for s, target in self._leaving if s != source}
        self._ties = {tie for tie in self._ties if tie[0] != source}
        self._waiting = {key: w for key, w in self._waiting.items() if key[0].source != source}

    def lives(self) -> Sequence[TableLife]:
        """The lives of all tables that have waited in this run."""
        return tuple(self._begun)

    def life(self, member: Member, place: int) -> int:
        """The number of the last renaming that the rows of a table at a place have waited for."""
        lives = self._lives.get(member, ())
        return max(((p, life) for p, life in lives if p <= place), default=(0, 0))[1]

    def applied_until(self, source: str, target: TableName, life: int, version: int) -> int:
        """The place before which a target that was renamed has the rows of a table in this life.

        ``version``: of the rows. Rows of a later version were held then, or not read.
        """
        found = self._until.get((source, target), ())
        return max(
            (
                place
                for number, place in found
                if number > life and self._versions[source, target, number] >= version
            ),
            default=0,
        )

    def entered_until(self, source: str, target: TableName) -> int:
        """Return the place of the last RENAME of a source that moved a shard to a target, or 0."""
        shards = (s for each in self._renamings for s in (*each.moved, *each.joined))
        return max(
            (s.place for s in shards if s.member.source == source and s.target == target),
            default=0,
        )

    def left(
        self,
        rows: RowEvents,
        target: TableName,
        version: int,
        members: Callable[[int], Member],
    ) -> RowEvents | None:
        """The rows, all of one version, that a target did not have when it was renamed.

        Args:
            members: returns the member of a number.
        """
        if not self.is_renamed(target):
            return rows
        first, until = rows.first.transaction, []
        for kind in rows.kinds:
            member = members(kind.member)
            life = self.life(member, first)
            until.append(self.applied_until(member.source, target, life, version))
        if max(until) <= first:
            return rows
        return rows.where(rows.transaction >= np.array(until, np.int64)[rows.kind])

    def floor(self, target: TableName, member: Member, place: int) -> int:
        """The version from which on a target is the one that a table created at a place joins.

        0 if the target was not renamed before that.
        """
        return max(self._ended(target, member, place), default=0)

    def is_another(self, target: TableName, member: Member, place: int) -> bool:
        """Whether the target that a table joins at a place has got the name of a renamed one."""
        return bool(self._ended(target, member, place))

    def _ended(self, target: TableName, member: Member, place: int) -> list[int]:
        """The versions at which targets of this name were renamed, for a table of that place."""
        return self._spans(target, member, place)[0]

    def end(self, target: TableName, member: Member, place: int) -> int | None:
        """The version at which the target that a table joined at a place got another name.

        None if it has the name still.
        """
        return self._spans(target, member, place)[1]

    def _spans(self, target: TableName, member: Member, place: int) -> tuple[list[int], int | None]:
        """The versions at which targets of this name were renamed before a table of that place
        joined, and the one after that. The later ones are of other targets."""
        life, before = self.life(member, place), []
        for renaming in self._renamings:
            own = [shard.version for shard in renaming.shards if shard.former == target]
            until = dict(self._until.get((member.source, target), ())).get(renaming.number, 0)
            if own and (renaming.number <= life or place >= until):
                before.append(max(own))
            elif own:
                return before, max(own)
        return before, None

    def is_renamed(self, target: TableName) -> bool:
        """Whether a target has got or lost its name."""
        return any(name == target for _, name in self._until)

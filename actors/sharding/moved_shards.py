"""The shards that a RENAME moves to another target, and the tables that wait for such a move.

A target has the rows of all its shards. So it is renamed when all of them have made the RENAME, in
any order. Until then, a shard that has made it is not read any further, under either name, while
the other shards continue. The saved position stays before the statement.

The *life* of a table is the number of the last renaming that its rows waited for, or 0. When a
target was renamed, it had all rows that were read before, except rows of tables whose life is the
number of this renaming or a later one.
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
    """The range of target versions at which a table can have joined.

    Attributes:
        floor: the first possible version; earlier versions of this name belong to another table.
        end: the version at which the target was renamed after the table had joined; None if it was
            not.
        entered: the version of the target when a RENAME moved the table to it; None if none did.
    """

    floor: int
    end: int | None
    entered: int | None


WAITING = 1 << 62
"""The life of a table whose rows wait: the renaming has no number yet."""


@dataclass(frozen=True, slots=True)
class WaitingShard:
    """A shard that has made a RENAME before other shards of its target.

    Attributes:
        name: the new name in the statement.
        epoch: the run of its source that has read the statement; a later run reads it again.
        statement: the event.
        joins: whether the operator has moved its rows, so it does not wait for other shards.
    """

    move: MovedShard
    name: TableName
    epoch: int
    statement: Statement
    joins: bool = False


@define(eq=False)
class MovedShards:
    """All shards of a task that a RENAME moves to another target.

    Attributes:
        _renamings: all renamings of the task so far, in order.
        _awaited: by shard and position of its RENAME, the former and the new target of each shard
            that waits. Includes shards that waited in earlier generations and are read again.
        _joined: tables that joined a target without waiting, with the positions of their
            statements. A source that is read again reaches these statements a second time.
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
        """Return the number of the renaming that included a shard's RENAME at ``place``, or 0.

        This includes shards that joined their new target without a renaming.
        """
        return self._numbers.get((member, place), 0)

    def bounds(self, source: str, effect: Effect, place: int) -> VersionBounds:
        """Return the target versions at which the table of an effect can have joined."""
        member = Member(source, effect.table)
        former = effect.renamed_to if effect.kind is EffectKind.MOVE_IN else effect.table
        entered = self.entered(effect.target, Member(source, former), place) if former else None
        floor = self.floor(effect.target, member, place)
        return VersionBounds(floor, self.end(effect.target, member, place), entered)

    def entered(self, target: TableName, member: Member, place: int) -> int | None:
        """Return the target's version when a shard's statement at ``place`` moved the shard to it.

        Returns None if the shard joined without a record. ``member`` has its former name.
        """
        number = self.number(member, place)
        return self._entered.get((target, number)) if number else None

    def last_end(self, target: TableName) -> int:
        """Return the version at which a former target of this name was last renamed, or 0."""
        shards = (shard for renaming in self._renamings for shard in renaming.shards)
        return max((shard.version for shard in shards if shard.former == target), default=0)

    @property
    def renamings(self) -> Sequence[Renaming]:
        """All renamings of the task so far, in order."""
        return self._renamings

    def ahead(self, member: Member, place: int) -> int | None:
        """Return the target's version at which the rows of a created shard were held, or None."""
        return self._ahead.get((member, place))

    def note_ahead(self, member: Member, place: int, version: int) -> None:
        """Record that the rows of a created shard are held while its target has this version."""
        self._ahead[member, place] = version

    def lacks_record(self, member: Member, place: int, version: int, *, fits: bool) -> bool:
        """Whether a created shard cannot join its target at a version until the join is recorded.

        While its rows were held, rows of other shards have moved the watermarks of this version
        past them.

        Args:
            place: position of the shard's CREATE TABLE.
            version: version of the target.
            fits: whether the shard fits the target at this version.
        """
        if self.number(member, place):
            return False
        held = self.ahead(member, place)
        return version <= held if held is not None else not fits

    def follows(self, member: Member, place: int) -> bool:
        """Whether a shard's target follows the shard's RENAME at ``place``, now or later."""
        key = member, place
        if key in self._waiting:
            return not self._waiting[key].joins
        return any(
            key == (shard.member, shard.place)
            for renaming in self._renamings
            for shard in renaming.shards
        )

    def wait(self, shard: WaitingShard) -> None:
        """Add a shard that waits for the other shards of its target, or for its new target."""
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
        """Change the RENAME of a waiting shard.

        A later statement moves the shard to another target.
        """
        self._awaited[move.member, move.place] = move.former, move.target

    def join(self, member: Member, target: TableName, epoch: int, statement: Statement) -> None:
        """Add a created shard that waits for joining its target, as the operator has decided.

        While its rows were held, rows of other shards have moved the watermarks past them.
        """
        place = statement.transaction
        move = MovedShard(member, place, target, target)
        self.wait(WaitingShard(move, member.name, epoch, statement, joins=True))
        self.begin(member, place, WAITING)

    def end_wait(self, member: Member, place: int) -> None:
        """If ``member`` is the name of a waiting table, end this table's wait from ``place`` on."""
        begun = [life for life in self._begun if life.member == member and life.place < place]
        if begun and begun[-1].number == WAITING:
            self.begin(member, place, self.life(member, place))

    def rename(self, source: str, old: TableName, new: TableName, place: int) -> None:
        """Record the new name of a table that may wait for joining its target."""
        former, renamed = Member(source, old), Member(source, new)
        begun = [life.number for life in self._begun if life.member == former]
        self.end_wait(renamed, place)
        if begun and begun[-1] == WAITING:
            self.begin(renamed, place, WAITING)
            self.end_wait(former, place)

    @property
    def waiting(self) -> Sequence[WaitingShard]:
        """The shards that wait for other shards."""
        return [shard for shard in self._waiting.values() if not shard.joins]

    @property
    def joining(self) -> Sequence[WaitingShard]:
        """The shards whose rows the operator has moved, and that have not joined yet."""
        return [shard for shard in self._waiting.values() if shard.joins]

    def tie(self, source: str, target: TableName, former: TableName) -> None:
        """Record that foreign keys tie a table to a renamed shard: neither is read any further.

        Args:
            source: source of the table and of the shard.
            target: target of the table.
            former: former target of the shard.
        """
        self._ties.add((source, target, former))

    def in_circle(self, target: TableName, sources: Mapping[TableName, Collection[str]]) -> bool:
        """Whether a target waits for its own renaming through the renamings of other targets.

        Args:
            target: a target that shards wait to leave.
            sources: by target that shards wait to leave, the sources of its remaining shards.
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
        """Record that a table of a target waits for the renaming of another target.

        Args:
            source: source of the table.
            target: target of the table.
            place: position of the table's statement.
            leaves: whether the table then moves to another target.
        """
        self._touched.setdefault((source, target), place)
        if leaves:
            self._leaving.add((source, target))

    @property
    def touched(self) -> Set[TableName]:
        """The targets with a waiting table.

        Rows of other shards move the target's watermarks past the rows of the waiting table, which
        are read later.
        """
        return {target for _, target in self._touched}

    @property
    def targets(self) -> Set[TableName]:
        """The targets that shards wait to leave or to join."""
        moves = [shard.move for shard in self._waiting.values()]
        return {name for move in moves for name in (move.former, move.target)} | self.touched

    async def next_waiting(self) -> None:
        """Return when at least one shard waits."""
        if not self._waiting:
            self._changed = anyio.Event()
            await self._changed.wait()

    def places(self, source: str) -> Collection[Place]:
        """Return the positions that the saved position of a source must not pass.

        After a target has moved, the task reads the RENAME again, and also everything on other
        sources that waited for it.
        """
        moves = (shard.move for shard in self._waiting.values())
        places = [move.place for move in moves if move.member.source == source]
        places += [place for (of, _), place in self._touched.items() if of == source]
        return [Place(place, 0) for place in places]

    def is_awaited(self, target: TableName) -> bool:
        """Whether shards wait to join a target, or waited for it before their source restarted."""
        return any(target == to for _, to in self._awaited.values())

    def was_left(self, target: TableName) -> bool:
        """Whether shards wait to leave a target, or waited for it before their source restarted."""
        left = any(target == former != to for former, to in self._awaited.values())
        return left or self.is_left(target)

    def note_joined(self, member: Member, place: int) -> None:
        """Record that a created table joins its target without waiting."""
        self._joined.add((member, place))

    def has_joined(self, member: Member, place: int) -> bool:
        """Whether a table created at ``place`` has joined its target, in this run or before.

        The join is decided only once, since the decision depends on how far the other sources are
        read.
        """
        return (member, place) in self._joined

    def settle(self, member: Member, place: int) -> None:
        """Record that a shard does not wait with its RENAME at ``place``."""
        self._awaited.pop((member, place), None)

    def is_left(self, target: TableName) -> bool:
        """Whether shards of a target wait to leave it."""
        former = {shard.move.former for shard in self.waiting}
        return target in former | {left for _, left in self._leaving}

    def begin(self, member: Member, place: int, life: int) -> None:
        """Record that a table waits from ``place`` on, or has another life."""
        self._begun.append(TableLife(member, place, life))

    def restart(self, source: str) -> None:
        """Forget the state of a source that is read again from an earlier position."""
        self._begun = [life for life in self._begun if life.member.source != source]
        self._touched = {key: at for key, at in self._touched.items() if key[0] != source}
        self._leaving = {(s, target) for s, target in self._leaving if s != source}
        self._ties = {tie for tie in self._ties if tie[0] != source}
        self._waiting = {key: w for key, w in self._waiting.items() if key[0].source != source}

    def lives(self) -> Sequence[TableLife]:
        """Return the lives of all tables that have waited in this run."""
        return tuple(self._begun)

    def life(self, member: Member, place: int) -> int:
        """Return the life of a table's rows at ``place``."""
        lives = self._lives.get(member, ())
        return max(((p, life) for p, life in lives if p <= place), default=(0, 0))[1]

    def applied_until(self, source: str, target: TableName, life: int, version: int) -> int:
        """Return the position up to which a renamed target has a table's rows of this life.

        Rows of a later version than ``version`` were held at the renaming, or had not been read.
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
        """Return the position of the source's last RENAME that moved a shard to a target, or 0."""
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
        """Return the rows that a target did not have when it was renamed.

        Args:
            rows: rows of one version.
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
        """Return the first version of the target that a table created at ``place`` joins.

        Returns 0 if no target of this name was renamed before.
        """
        return max(self._ended(target, member, place), default=0)

    def is_another(self, target: TableName, member: Member, place: int) -> bool:
        """Whether a table joins at ``place`` a target that has the old name of a renamed target."""
        return bool(self._ended(target, member, place))

    def _ended(self, target: TableName, member: Member, place: int) -> list[int]:
        return self._spans(target, member, place)[0]

    def end(self, target: TableName, member: Member, place: int) -> int | None:
        """Return the version at which the target that a table joined at ``place`` was renamed.

        Returns None if the target still has its name.
        """
        return self._spans(target, member, place)[1]

    def _spans(self, target: TableName, member: Member, place: int) -> tuple[list[int], int | None]:
        """Return the versions at which targets of this name were renamed before a table joined.

        Also returns the next such version, at which the table's own target was renamed, or None.
        Later renamings are of other targets.
        """
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
        """Whether a target has received or lost its name by a renaming."""
        return any(name == target for _, name in self._until)

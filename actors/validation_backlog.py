"""The keys that the validation still has to compare, and its results: kept from one run to the
next."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import anyio

from replicator.downstream.meta.validation.validation_keys import SavedKeys
from replicator.mysql.names import Member, TableName

LOOKS = 3
"""So often a row is seen to differ in the same way before it is an error."""

BUSY_LOOKS = 12
"""So often, where it is applied again and again meanwhile: a value that goes away and comes back
differs in the same way by chance, at one of four looks."""


@dataclass(frozen=True, slots=True)
class WaitingKeys:
    """Keys of one shard that were applied at ``since`` (by the monotonic clock).

    ``columns``: the names of the key's columns; ``lines``: the key lines, each with its newline;
    ``failures``: how often they could not be read.
    """

    target: TableName
    member: Member
    columns: tuple[str, ...]
    lines: bytes
    since: float
    failures: int = 0

    @property
    def count(self) -> int:
        """How many keys these are, some of them more than once."""
        return self.lines.count(b"\n")


@dataclass(slots=True)
class SuspectRow:
    """A row that differs, until it is known whether a change of it is still to be applied.
    ``digest``: how it differs; ``looks``: how often it was seen like this, ``quiet`` of them since
    it was applied last; ``since``: the first time; ``due``: when to compare it again;
    ``certain``: when the looks sufficed, 0 before; all by the monotonic clock. ``ends``: by source,
    where its binlog ended at the last look, as file and offset.
    """

    digest: bytes
    since: float
    due: float
    ends: Mapping[str, tuple[str, int]]
    looks: int = 1
    quiet: int = 1
    certain: float = 0.0

    @property
    def suffices(self) -> bool:
        """Whether no change on its way explains it."""
        return self.quiet >= LOOKS or self.looks >= BUSY_LOOKS


@dataclass(slots=True)
class ValidationBacklog:
    """Keys that wait, rows that differ, and the counts of all comparisons.

    ``most``: how many keys may wait. ``checked`` and ``skipped`` count keys: compared, and left out
    because there were too many or their servers could not be read. ``waiting`` and ``due``: keys
    before and after their time, both the oldest first. ``parked``: keys of targets with a shard
    that can't be read, before it can be. ``errors``: rows by the operator's answer.
    ``looking``: keys that were taken out and are being compared. ``left_out``: targets that can't
    be validated, with the reason. ``resumed``: whether what was saved before this process has been
    taken up. ``reported``: set when errors were saved since.
    """

    most: int = 0
    waiting: deque[WaitingKeys] = field(default_factory=deque)
    due: deque[WaitingKeys] = field(default_factory=deque)
    parked: deque[WaitingKeys] = field(default_factory=deque)
    suspects: dict[tuple[TableName, bytes], SuspectRow] = field(default_factory=dict)
    checked: int = 0
    skipped: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    looking: list[WaitingKeys] = field(default_factory=list)
    left_out: dict[TableName, str] = field(default_factory=dict)
    resumed: bool = False
    reported: anyio.Event = field(default_factory=anyio.Event)
    _count: int = 0
    _applied: list[WaitingKeys] = field(default_factory=list)

    @property
    def waiting_count(self) -> int:
        """How many keys wait."""
        return self._count

    @property
    def seconds(self) -> float:
        """For how long the oldest of the keys has waited."""
        first = next(chain(self.parked, self.due, self.waiting), None)
        return time.monotonic() - first.since if first else 0.0

    def report(self) -> None:
        """Tell that errors were saved."""
        # An anyio event can't be cleared.
        self.reported.set()
        self.reported = anyio.Event()

    def add(self, keys: WaitingKeys) -> None:
        """Add keys for their first comparison; if there are too many, the oldest are skipped."""
        self.waiting.append(keys)
        self._applied.append(keys)
        self._count += keys.count
        while self._count > self.most:
            self.skipped += self._pop(self.parked or self.due or self.waiting).count

    def take(self, until: float, most: int) -> list[WaitingKeys]:
        """Take out keys that were applied before ``until``, not many more than ``most``.

        The newest of them: a row that is wrong now is found soon, also while the task still has
        to compare all that it applied in a catch-up.
        """
        while self.waiting and self.waiting[0].since <= until:
            self.due.append(self.waiting.popleft())
        taken: list[WaitingKeys] = []
        while self.due and most > 0:
            taken.append(self.due.pop())
            self._count -= taken[-1].count
            most -= taken[-1].count
        self.looking = taken
        return taken

    def give_back(
        self, keys: Iterable[WaitingKeys], unreadable: Collection[TableName] = ()
    ) -> None:
        """Put keys back that were taken out; the rest is compared.

        Keys of targets that are ``unreadable`` are parked.
        """
        back, self.looking = list(keys), []
        for one in reversed(back):
            (self.parked if one.target in unreadable else self.due).append(one)
        self._count += sum(one.count for one in back)

    def unpark(self, target: TableName) -> None:
        """Have the parked keys of a target compared: its shards can be read."""
        of_target = [keys for keys in self.parked if keys.target == target]
        self.parked = deque(keys for keys in self.parked if keys.target != target)
        self.due.extendleft(replace(keys, failures=0) for keys in reversed(of_target))

    def applied_again(self, differing: Iterable[TableName] = ()) -> dict[TableName, set[bytes]]:
        """The keys that were applied since this was called last, of the targets ``differing`` and
        those of rows that differ, which begin to be quiet anew."""
        targets = {target for target, _ in self.suspects} | set(differing)
        found: dict[TableName, set[bytes]] = {}
        for keys in self._applied:
            if keys.target in targets:
                found.setdefault(keys.target, set()).update(keys.lines.split(b"\n"))
        self._applied.clear()
        for (target, key), suspect in self.suspects.items():
            if key in found.get(target, ()):
                suspect.quiet = 0
        return found

    def differs(
        self, place: tuple[TableName, bytes], seen: SuspectRow, *, again: bool, applied: bool
    ) -> SuspectRow:
        """Take in how a row differs at a look; all that is known of it then.

        ``again``: the target had all by then that the shards had at the look before, else the look
        tells nothing more of a row that differed already. ``applied``: since the look began, it
        was.
        """
        before = self.suspects.get(place)
        if before is None or before.digest != seen.digest:
            before = self.suspects[place] = seen
        elif again:
            before.looks, before.quiet = before.looks + 1, before.quiet + 1
            before.due, before.ends = seen.due, seen.ends
        if applied:
            before.quiet = 0
        return before

    def unfinished(self) -> Iterator[SavedKeys]:
        """All that is still to be compared, by target and shard."""
        lines: dict[tuple[TableName, Member, tuple[str, ...]], list[bytes]] = {}
        for keys in (*self.looking, *self.parked, *self.due, *self.waiting):
            lines.setdefault((keys.target, keys.member, keys.columns), []).append(keys.lines)
        for (target, member, columns), parts in lines.items():
            yield SavedKeys(target, member, columns, b"".join(parts))
        differing: dict[TableName, list[bytes]] = {}
        for target, key in self.suspects:
            differing.setdefault(target, []).append(key + b"\n")
        for target, parts in differing.items():
            yield SavedKeys(target, None, (), b"".join(parts))

    def resume(self, saved: Iterable[SavedKeys]) -> None:
        """Take up what another process has left unfinished: it is compared from the beginning."""
        now = time.monotonic()
        for keys in saved:
            if keys.shard is not None:
                self.add(WaitingKeys(keys.target, keys.shard, keys.columns, keys.lines, now))
                continue
            for key in keys.lines.split(b"\n")[:-1]:
                # Whatever is found differs from this.
                self.suspects[keys.target, key] = SuspectRow(b"", now, now, {})

    def _pop(self, keys: deque[WaitingKeys]) -> WaitingKeys:
        first = keys.popleft()
        self._count -= first.count
        return first

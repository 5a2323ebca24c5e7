"""The keys that validation still has to compare, and its results. They outlive a generation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import anyio

from replicator.downstream.meta.validation.validation_keys import SavedKeys
from replicator.mysql.names import Member, TableName

COMPARISONS = 3
"""Number of comparisons with the same difference after which a row is an error."""

BUSY_COMPARISONS = 12
"""The same number for a row that is applied again and again meanwhile.

A value that alternates between two values has the same difference by chance in one of four
comparisons.
"""


@dataclass(frozen=True, slots=True)
class WaitingKeys:
    """Keys of one shard that were applied together.

    Attributes:
        columns: names of the key's columns.
        lines: the key lines, each with its newline.
        since: when they were applied, by the monotonic clock.
        failures: how often they could not be read.
    """

    target: TableName
    member: Member
    columns: tuple[str, ...]
    lines: bytes
    since: float
    failures: int = 0

    @property
    def count(self) -> int:
        """The number of keys; a key that was applied twice counts twice."""
        return self.lines.count(b"\n")


@dataclass(slots=True)
class SuspectRow:
    """A row that differs, while an unapplied change may still explain the difference.

    Times are by the monotonic clock.

    Attributes:
        digest: digest of the difference.
        since: time of the first comparison with this difference.
        due: time of the next comparison.
        ends: by source, the end of its binlog (file, offset) at the last comparison.
        comparisons: number of comparisons with this difference.
        quiet: number of these since the row was last applied.
        certain: time when the comparisons sufficed; 0 before.
    """

    digest: bytes
    since: float
    due: float
    ends: Mapping[str, tuple[str, int]]
    comparisons: int = 1
    quiet: int = 1
    certain: float = 0.0

    @property
    def suffices(self) -> bool:
        """Whether the comparisons exclude that an unapplied change explains the difference."""
        return self.quiet >= COMPARISONS or self.comparisons >= BUSY_COMPARISONS


@dataclass(slots=True)
class ValidationBacklog:
    """Keys that wait, rows that differ, and the counts of all comparisons.

    Attributes:
        most: maximum number of keys that may wait.
        waiting: keys whose comparison is not due yet, the oldest first.
        due: keys whose comparison is due, the oldest first.
        parked: keys of targets with a shard that can't be read at present.
        suspects: rows that differ, by target and key line.
        checked: number of keys compared.
        skipped: number of keys that were skipped because there were too many, or because their
            servers could not be read.
        errors: number of errors, by the operator's answer.
        looking: keys that are being compared.
        left_out: targets that can't be validated, with the reason.
        resumed: whether the keys that an earlier process saved were loaded.
        reported: an event that is set when errors are saved; a new event replaces it each time.
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
        """The number of keys that wait."""
        return self._count

    @property
    def seconds(self) -> float:
        """The age of the oldest key, in seconds."""
        first = next(chain(self.parked, self.due, self.waiting), None)
        return time.monotonic() - first.since if first else 0.0

    def report(self) -> None:
        """Set `reported`."""
        # An anyio event can't be cleared.
        self.reported.set()
        self.reported = anyio.Event()

    def add(self, keys: WaitingKeys) -> None:
        """Add keys for their first comparison; if there are too many, skip the oldest."""
        self.waiting.append(keys)
        self._applied.append(keys)
        self._count += keys.count
        while self._count > self.most:
            self.skipped += self._pop(self.parked or self.due or self.waiting).count

    def take(self, until: float, most: int) -> list[WaitingKeys]:
        """Remove and return keys that were applied before ``until``, not many more than ``most``.

        The newest keys come first, so that a row that is wrong now is found soon, even if many keys
        wait after a catch-up.
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
        """Return keys to the queue that could not be compared; the other keys of `take` are done.

        Keys of ``unreadable`` targets are parked.
        """
        back, self.looking = list(keys), []
        for one in reversed(back):
            (self.parked if one.target in unreadable else self.due).append(one)
        self._count += sum(one.count for one in back)

    def unpark(self, target: TableName) -> None:
        """Make the parked keys of a target due, because its shards can be read again."""
        of_target = [keys for keys in self.parked if keys.target == target]
        self.parked = deque(keys for keys in self.parked if keys.target != target)
        self.due.extendleft(replace(keys, failures=0) for keys in reversed(of_target))

    def applied_again(self, differing: Iterable[TableName] = ()) -> dict[TableName, set[bytes]]:
        """Return the keys applied since the last call, by target.

        This concerns only targets that have suspect rows, and ``differing`` targets. Suspect rows
        that were applied are no longer quiet.
        """
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
        """Record the result of a comparison, and return everything known about the row.

        Args:
            place: the target and the key line of the row.
            seen: the difference that was found.
            again: whether the target now has everything that the shards had at the former
                comparison. If not, the same difference proves nothing.
            applied: whether the row was applied after the comparison began.
        """
        before = self.suspects.get(place)
        if before is None or before.digest != seen.digest:
            before = self.suspects[place] = seen
        elif again:
            before.comparisons, before.quiet = before.comparisons + 1, before.quiet + 1
            before.due, before.ends = seen.due, seen.ends
        if applied:
            before.quiet = 0
        return before

    def unfinished(self) -> Iterator[SavedKeys]:
        """Yield the keys still to be compared, by target and shard."""
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
        """Add the keys that an earlier process saved; their comparisons start again."""
        now = time.monotonic()
        for keys in saved:
            if keys.shard is not None:
                self.add(WaitingKeys(keys.target, keys.shard, keys.columns, keys.lines, now))
                continue
            for key in keys.lines.split(b"\n")[:-1]:
                # No difference has an empty digest, so the first one found replaces this digest.
                self.suspects[keys.target, key] = SuspectRow(b"", now, now, {})

    def _pop(self, keys: deque[WaitingKeys]) -> WaitingKeys:
        first = keys.popleft()
        self._count -= first.count
        return first

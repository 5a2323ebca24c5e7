"""A source from one start to the next, and its segments in the writer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from actors.writing.segment_tracker import Resume
from replicator.sharding.items import GroupState
from replicator.sharding.pessimistic.group import Group
from replicator.watermark import Place
from tests.simulation.estate import Event
from tests.simulation.store import Forwarded, Watermark

States = dict[str, GroupState[str]]


@dataclass(slots=True)
class Segment:
    """A segment of a source in the writer. ``parts`` fill up as the groups hand them over.
    ``release``: a group fills it with rows that it has held."""

    number: int
    targets: frozenset[str]
    end: int
    complete: bool
    parts: dict[str, tuple[list[Forwarded], GroupState[str]]] = field(default_factory=dict)
    applied: bool = False
    release: bool = False

    @property
    def whole(self) -> bool:
        return self.targets == self.parts.keys()


@dataclass(slots=True)
class Source:
    """One incarnation of a source: reader, mailboxes of its groups, its tracker in the writer.

    ``asked``: the targets for which a release is under way; ``released``: by target and version,
    the segments with released rows that are not applied; ``whole``: the last transaction that was
    read is complete; ``end``: where the last applied segment ends.
    """

    name: str
    log: list[tuple[Place, Event]]
    next: int
    states: States
    low_watermarks: dict[str, Watermark]
    groups: dict[str, Group[str, None]]
    resume: Resume[States]
    segments: deque[Segment] = field(default_factory=deque)
    mail: dict[str, deque[tuple[Segment, list[tuple[Place, Event]]]]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    released: dict[tuple[str, int], Segment] = field(default_factory=dict)
    whole: bool = True
    end: int = 0
    number: int = 0
    cutover_segments: dict[str, tuple[int, int]] = field(default_factory=dict)
    stopping: bool = False

    def open_items(self) -> list[Place]:
        for (target, version), segment in tuple(self.released.items()):
            if segment.applied:
                del self.released[target, version]
                self.groups[target].released(version)
        return [at for group in self.groups.values() for at in group.open_items]

    @property
    def drained(self) -> bool:
        return not self.segments and not any(self.mail.values())

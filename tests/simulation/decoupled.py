"""Every run of a larger small scope, in sets of states instead of one by one.

The sources meet in nothing but the steps of the lock and a crash (`Centre`). Between two of these,
a step of one source neither asks nor changes another: such steps commute, in every order. So a
*node*, reached by one sequence of shared steps, is a set of states for each source, closed under
that source's own steps, and stands for every combination of them: whichever states are picked,
some interleaving since the last shared step leads each source to its own. A shared step leads to
another node. It looks at little of each source (`_face`); so it is tried once for each combination
of faces, and the step is then taken by all sources that have them. Where the faces between which
it is possible are not all combinations of some, each combination makes a node of its own. A crash
may come in every combination, and what it leaves of a source depends on that source alone. Nodes
of the same sets are visited once, and what a source does at a centre is found out once.

So nothing is left out and nothing added: the combinations are exactly the states that
`tests.simulation.small.explore` visits, and tests compare both for all scopes that it can do.
Every invariant speaks of the centre and one source, so it is seen by each source in its set.

The method is decoupled search with the lock as the centre of a star: D. Gnad, J. Hoffmann,
"Star-topology decoupled state space search", Artificial Intelligence 257 (2018). That independent
steps need no more than one order is partial-order reduction: P. Godefroid, "Partial-Order Methods
for the Verification of Concurrent Systems", LNCS 1032 (1996). That states which differ by names
count once is symmetry reduction: C. N. Ip, D. L. Dill, "Better verification through symmetry",
Formal Methods in System Design 9 (1996).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from tests.simulation.small import (
    Catalogue,
    Centre,
    Failed,
    Scope,
    Small,
    Stage,
    State,
    Step,
    after_crash,
    crashed,
    start,
)
from tests.simulation.small_source import SmallSource

Numbers = frozenset[int]
Face = tuple[object, ...]


@dataclass(eq=False, slots=True)
class Node:
    """Every combination of the states in ``sets``, one of each source.

    ``came``: by which step from which state of the same source, in this node or the one before.
    """

    centre: Centre
    parent: Node | None
    sets: list[Numbers] = field(default_factory=list)
    came: list[dict[int, tuple[int, Step]]] = field(default_factory=list)


@dataclass(slots=True)
class Decoupled:
    """What a search has seen. ``path``: the steps of the source that the failure was seen by."""

    nodes: list[Node] = field(default_factory=list)
    transitions: int = 0
    failure: str | None = None
    path: tuple[Step, ...] = ()

    def states(self) -> Iterator[State]:
        """All states that the nodes stand for, some of them repeatedly."""
        for node in self.nodes:
            for numbers in product(*node.sets):
                yield node.centre, tuple(sorted(numbers))

    def count(self) -> int:
        """How many different states the nodes of two sources stand for, equal sources swapped
        counted once. Not one by one: sources that are in the same sets are counted together.
        """
        total = 0
        for centre in {node.centre for node in self.nodes}:
            pairs = [node.sets for node in self.nodes if node.centre == centre]
            pairs += [[right, left] for left, right in pairs]
            sides: tuple[dict[int, int], dict[int, int]] = ({}, {})
            for bit, sets in enumerate(pairs):
                for side, numbers in zip(sides, sets, strict=True):
                    for number in numbers:
                        side[number] = side.get(number, 0) | 1 << bit
            left, right = (Counter(side.values()) for side in sides)
            ordered = sum(
                many * others
                for mask, many in left.items()
                for other, others in right.items()
                if mask & other
            )
            twice = sum(bool(mask & sides[1].get(number, 0)) for number, mask in sides[0].items())
            total += (ordered + twice) // 2
        return total


class _FoundError(Exception):
    def __init__(self, node: Node, index: int, number: int, step: Step, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.node = node
        self.index = index
        self.number = number
        self.step = step

    def path(self) -> tuple[Step, ...]:
        node: Node | None = self.node
        number = self.number
        steps = [self.step]
        while node is not None:
            while number in node.came[self.index]:
                number, step = node.came[self.index][number]
                steps.append(step)
                if step[0] not in OWN:
                    break
            node = node.parent
        return tuple(reversed(steps))


OWN = ("read", "tell", "drop", "restart")


class Search:
    """A search through one scope; ``catalogue`` may be that of another one."""

    def __init__(self, scope: Scope, crashes: int, catalogue: Catalogue) -> None:
        self.scope = scope
        self.crashes = crashes
        self.catalogue = catalogue
        self.found = Decoupled()
        self._own: dict[tuple[int, Stage, int], list[tuple[Step, int]]] = {}
        self._left: dict[tuple[int, Stage, int], Numbers] = {}
        self._seen: set[object] = set()
        self._waiting: list[Node] = []

    def run(self) -> Decoupled:
        """Visit all nodes; stops at the first failure."""
        centre = Centre(self.crashes, 0, Stage.OPEN)
        try:
            first: list[dict[int, int | None]] = [
                {number: None} for number in start(self.scope, self.catalogue)
            ]
            self.enter(centre, first, None, ())
            while self._waiting:
                node = self._waiting.pop()
                self.shared(node)
                if node.centre.crashes:
                    self.crash(node)
        except _FoundError as failure:
            self.found.failure = str(failure)
            self.found.path = failure.path()
        return self.found

    def enter(
        self,
        centre: Centre,
        entries: Iterable[dict[int, int | None]],
        parent: Node | None,
        step: Step,
    ) -> None:
        """A node of these states, by the state before the step, and all that follow by themselves.

        A node with the same sets in another order is the same: names do not matter.
        """
        node = Node(centre, parent)
        for index, entry in enumerate(entries):
            node.came.append({n: (old, step) for n, old in entry.items() if old is not None})
            node.sets.append(self.closed(node, index, set(entry)))
        same = (centre, frozenset(Counter(node.sets).items()))
        if same not in self._seen:
            self._seen.add(same)
            self.found.nodes.append(node)
            self._waiting.append(node)

    def closed(self, node: Node, index: int, reached: set[int]) -> Numbers:
        """All states that a source comes to by its own steps."""
        waiting = list(reached)
        while waiting:
            number = waiting.pop()
            for step, new in self.own(node, index, number):
                if new not in reached:
                    reached.add(new)
                    node.came[index][new] = (number, step)
                    waiting.append(new)
        return frozenset(reached)

    def alone(self, centre: Centre, index: int, source: SmallSource) -> Small:
        sources: list[SmallSource | None] = [None] * len(self.scope)
        sources[index] = source
        return Small(centre, sources)

    def own(self, node: Node, index: int, number: int) -> list[tuple[Step, int]]:
        """The steps of a source, taken while all others are away."""
        _, recorded, stage = node.centre
        known = self._own.get((recorded, stage, number))
        if known is not None:
            return known
        before = self.catalogue.sources[number]
        found = []
        for step in self.alone(node.centre, index, before).own_steps(index):
            new = self.alone(node.centre, index, before.copy())
            try:
                new.do_own(index, step)
                found.append((step, self.catalogue.number(new.source(index))))
            except Failed as error:
                raise _FoundError(node, index, number, step, error) from error
        self.found.transitions += len(found)
        self._own[recorded, stage, number] = found
        return found

    # The steps of the lock.

    def shared(self, node: Node) -> None:
        """Try the lock's step on each combination of faces; where there is none, is it the end?"""
        faces = [self.faces(numbers) for numbers in node.sets]
        possible: dict[Step, list[tuple[Face, ...]]] = {}
        for combination in product(*faces):
            numbers = [found[face][0] for found, face in zip(faces, combination, strict=True)]
            step = Small(node.centre, [self.catalogue.sources[n] for n in numbers]).shared_step()
            if step is None:
                self.end(node, [f[face] for f, face in zip(faces, combination, strict=True)])
            else:
                possible.setdefault(step, []).append(combination)
        for step, combinations in possible.items():
            sides = [dict.fromkeys(side) for side in zip(*combinations, strict=True)]
            size = 1
            for side in sides:
                size *= len(side)
            if size == len(combinations):
                self.take(node, step, faces, [list(side) for side in sides])
            else:
                for one in combinations:
                    self.take(node, step, faces, [[face] for face in one])

    def faces(self, numbers: Numbers) -> dict[Face, list[int]]:
        found: dict[Face, list[int]] = {}
        for number in numbers:
            found.setdefault(_face(self.catalogue.sources[number]), []).append(number)
        return found

    def take(
        self, node: Node, step: Step, faces: list[dict[Face, list[int]]], sides: list[list[Face]]
    ) -> None:
        """The lock's step, by each source that has one of the faces, with others that may."""
        partners = [faces[index][side[0]][0] for index, side in enumerate(sides)]
        entries: list[dict[int, int | None]] = []
        centre = node.centre
        for index, side in enumerate(sides):
            entry: dict[int, int | None] = {}
            for number in (number for face in side for number in faces[index][face]):
                numbers = [*partners[:index], number, *partners[index + 1 :]]
                new = Small(node.centre, [self.catalogue.sources[n].copy() for n in numbers])
                try:
                    new.do_shared(step)
                    entry.setdefault(self.catalogue.number(new.source(index)), number)
                except Failed as error:
                    raise _FoundError(node, index, number, step, error) from error
                self.found.transitions += 1
                centre = new.centre
            entries.append(entry)
        self.enter(centre, entries, node, step)

    def end(self, node: Node, sides: list[list[int]]) -> None:
        """No shared step: nothing may be missing where no source has a step of its own either."""
        still = [
            [number for number in side if not self.own(node, index, number)]
            for index, side in enumerate(sides)
        ]
        if not all(still):
            return
        for index, side in enumerate(still):
            for number in side:
                numbers = [s[0] for s in still]
                numbers[index] = number
                small = Small(node.centre, [self.catalogue.sources[n].copy() for n in numbers])
                try:
                    small.check_end()
                except Failed as error:
                    raise _FoundError(node, index, number, ("end",), error) from error

    # Crashes.

    def crash(self, node: Node) -> None:
        """A crash in any combination."""
        entries = []
        for index, numbers in enumerate(node.sets):
            entry: dict[int, int | None] = {}
            for number in numbers:
                for new in self.left(node, index, number):
                    entry.setdefault(new, number)
            entries.append(entry)
        self.enter(crashed(node.centre), entries, node, ("crash",))

    def left(self, node: Node, index: int, number: int) -> Numbers:
        _, recorded, stage = node.centre
        place = (recorded, stage, number)
        if place not in self._left:
            source = self.catalogue.sources[number]
            try:
                ways = after_crash(node.centre, source, len(self.scope), index)
            except Failed as error:
                raise _FoundError(node, index, number, ("crash",), error) from error
            self.found.transitions += len(ways)
            self._left[place] = frozenset(map(self.catalogue.number, ways))
        return self._left[place]


def _face(source: SmallSource) -> Face:
    """What the lock sees of a source."""
    group = source.group
    items = [(version, sorted({i.text for i in items})) for version, items in group.items.items()]
    return (
        group.known,
        group.base,
        group.ready,
        bool(group.members),
        group.made(f"d{group.known}"),
        tuple((version, tuple(texts)) for version, texts in sorted(items)),
    )

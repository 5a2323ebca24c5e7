"""The open table maps as arrays, for the compiled loop over events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from replicator.kernels.compiled import Bytes, Integers

_FIRST_IDS = 1 << 10
_FIRST_BODIES = 1 << 16
_MOST_BODIES = 1 << 24
_EMPTY = -1


class KnownTables:
    """By table id, the number of the table and the body of its table map.

    ``ids`` is a hash table whose size is a power of two: a row of (id, number, where the body
    begins in ``bodies``, how long it is, the statement that has mapped it last) stands at the first
    free place from the id's last bits on. -1: no id; no number; no body, so that the next table map
    is looked at; no statement. ``left_out`` has 256 truths for each number: which types of row
    events go nowhere.
    """

    __slots__ = ("_count", "_used", "bodies", "ids", "left_out")

    def __init__(self) -> None:
        self.left_out: Bytes = np.zeros(0, np.uint8)
        self.bodies: Bytes = np.empty(_FIRST_BODIES, np.uint8)
        self._used = 0
        self._clear(_FIRST_IDS)

    def _clear(self, room: int) -> None:
        self.ids: Integers = np.full((room, 5), _EMPTY, np.int64)
        self._count = 0

    def open(self, table_id: bytes, number: int, body: bytes, statement: int) -> None:
        """Note the table map of an id, which stands in a statement."""
        place = self._place(int.from_bytes(table_id, "little"), number)
        self.ids[place, 4] = statement
        self._make_room(len(body))
        end = self._used + len(body)
        if end > len(self.bodies):
            return
        self.bodies[self._used : end] = np.frombuffer(body, np.uint8)
        self.ids[place, 2:4] = self._used, len(body)
        self._used = end

    def _make_room(self, size: int) -> None:
        needed = self._used + size
        if needed > _MOST_BODIES:
            self.forget_bodies()
        elif needed > len(self.bodies):
            bodies = np.empty(max(needed, 2 * len(self.bodies)), np.uint8)
            bodies[: self._used] = self.bodies[: self._used]
            self.bodies = bodies

    def forget_bodies(self) -> None:
        """The next table map of each id is to be looked at again."""
        self.ids[:, 2:4] = _EMPTY
        self._used = 0

    def set_ids(self, numbers: Mapping[bytes, int]) -> None:
        """Know these ids only, with their numbers and without their bodies."""
        former = self.ids[self.ids[:, 0] != _EMPTY]
        statements = dict(zip(former[:, 0].tolist(), former[:, 4].tolist(), strict=True))
        self._clear(_FIRST_IDS)
        self._used = 0
        for table_id, number in numbers.items():
            key = int.from_bytes(table_id, "little")
            self.ids[self._place(key, number), 4] = statements.get(key, _EMPTY)

    def statement_of(self, table_id: bytes) -> int:
        """The statement that has mapped an id last; -1: none has."""
        return int(self.ids[self._free(int.from_bytes(table_id, "little")), 4])

    def set_left_out(self, number: int, kinds: Iterable[int]) -> None:
        """Note which types of row events go nowhere, of the table with this number."""
        begin, end = number << 8, number + 1 << 8
        if end > len(self.left_out):
            grown = np.zeros(2 * end, np.uint8)
            grown[: len(self.left_out)] = self.left_out
            self.left_out = grown
        self.left_out[begin:end] = 0
        for kind in kinds:
            self.left_out[begin | kind] = 1

    def _place(self, table_id: int, number: int) -> int:
        """Note the number of an id; gives its place."""
        if 2 * self._count >= len(self.ids):
            former = self.ids[self.ids[:, 0] != _EMPTY]
            self._clear(2 * len(self.ids))
            for row in former:
                self.ids[self._free(int(row[0]))] = row
            self._count = len(former)
        place = self._free(table_id)
        self._count += self.ids[place, 0] == _EMPTY
        self.ids[place, :4] = table_id, number, _EMPTY, _EMPTY
        return place

    def _free(self, table_id: int) -> int:
        """The place of an id, or the one that it can have."""
        mask = len(self.ids) - 1
        place = table_id & mask
        while self.ids[place, 0] not in (_EMPTY, table_id):
            place = place + 1 & mask
        return place

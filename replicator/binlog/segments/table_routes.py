"""The targets of row events, by their table ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.table_map import TableMap, packed_integer, parse_table_map
from replicator.binlog.segments.segment import RouteSlot
from replicator.kernels.compiled import Bytes, Integers

TABLE_ID = slice(19, 25)
"""The table id in table maps and row events."""


_FIRST_IDS = 1 << 10
_FIRST_BODIES = 1 << 16
_MOST_BODIES = 1 << 24
_EMPTY = -1


class KnownTables:
    """By table id, the number of the table and the body of its table map.

    ``ids`` is a hash table whose size is a power of two. A row has the id, the number, the start of
    the body in ``bodies``, its length, and the last statement that has mapped the id. The row is at
    the first free place from the id's last bits on. -1 means: no id; no number; no body, so that
    the next table map is read; no statement. ``left_out`` has 256 booleans for each number: the
    types of row events that are left out.
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
        """Record the table map of an id in a statement."""
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
        """Drop the bodies, so that the next table map of each id is read again."""
        self.ids[:, 2:4] = _EMPTY
        self._used = 0

    def set_ids(self, numbers: Mapping[bytes, int]) -> None:
        """Keep only these ids, with their numbers and without their bodies."""
        former = self.ids[self.ids[:, 0] != _EMPTY]
        statements = dict(zip(former[:, 0].tolist(), former[:, 4].tolist(), strict=True))
        self._clear(_FIRST_IDS)
        self._used = 0
        for table_id, number in numbers.items():
            key = int.from_bytes(table_id, "little")
            self.ids[self._place(key, number), 4] = statements.get(key, _EMPTY)

    def statement_of(self, table_id: bytes) -> int:
        """Return the last statement that has mapped an id; -1 if there is none."""
        return int(self.ids[self._free(int.from_bytes(table_id, "little")), 4])

    def set_left_out(self, number: int, kinds: Iterable[int]) -> None:
        """Record the types of row events to leave out for the table with this number."""
        begin, end = number << 8, number + 1 << 8
        if end > len(self.left_out):
            grown = np.zeros(2 * end, np.uint8)
            grown[: len(self.left_out)] = self.left_out
            self.left_out = grown
        self.left_out[begin:end] = 0
        for kind in kinds:
            self.left_out[begin | kind] = 1

    def _place(self, table_id: int, number: int) -> int:
        """Record the number of an id; return its place."""
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
        """Return the place of an id, or a free place for it."""
        mask = len(self.ids) - 1
        place = table_id & mask
        while self.ids[place, 0] not in (_EMPTY, table_id):
            place = place + 1 & mask
        return place


NO_TABLE = b"\xff\xff\xff\x00\x00\x00"
"""The table id of a row event without rows that only ends a statement (MySQL)."""

_BODY = 19
_NAMES = 27
"""Offset of the names, after the table id (6 bytes) and flags (2): each a length byte, text, a zero
byte."""
_MOST_IDS = 10_000
_MOST_TABLES = 20_000

Route = Callable[[str, str, bytes], RouteSlot | None]
"""Returns the route of a table; None if it is not replicated. Its arguments are the schema, the
name, and the type codes of the columns in the table map."""


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """A replicated table: its structure in the binlog and the destination of its rows."""

    table_map: TableMap
    slot: RouteSlot


NOT_REPLICATED = -1
"""Used in place of the number of a table."""


class TableRoutes:
    """The open table maps.

    ``by_id`` has the numbers of their tables, which are indexes into ``tables``, or NOT_REPLICATED;
    ``known`` has the same for the compiled loop. A table map is valid for the rows of its
    statement, which has a number.
    """

    def __init__(self, route: Route) -> None:
        self.by_id: dict[bytes, int] = {NO_TABLE: NOT_REPLICATED}
        self.tables: list[RoutedTable] = []
        self.known = KnownTables()
        self._route = route
        self._by_body: dict[bytes, int] = {}
        self._most_tables = _MOST_TABLES
        self.known.set_ids(self.by_id)

    def open(self, event: bytes, cut: int | None, statement: int) -> None:
        """Add a table map event of a statement; ``cut``: its end before its checksum.

        Calls the route once per distinct table map. Raises BinlogError if the map of a replicated
        table can't be read.
        """
        body = event[25:cut]
        number = self._by_body.get(body)
        if number is None:
            number = self._by_body[body] = self._resolve(event[:cut])
        self.by_id[event[TABLE_ID]] = number
        self.known.open(event[TABLE_ID], number, body, statement)

    def is_mapped(self, table_id: bytes, statement: int) -> bool:
        """Return whether a statement has a table map of an id."""
        return table_id == NO_TABLE or self.known.statement_of(table_id) == statement

    def takes(self, number: int, kind: int) -> bool:
        """Return whether row events of this type are returned for the table with this number."""
        return number != NOT_REPLICATED and kind not in self.tables[number].slot.left_out

    def forget(self) -> None:
        """Forget all routes, since they may differ after a statement."""
        self._by_body.clear()
        self.known.forget_bodies()

    def forget_ids(self) -> None:
        """Drop the table ids if they have become many; table maps precede their rows again."""
        if len(self.by_id) > _MOST_IDS:
            self.by_id.clear()
            self.by_id[NO_TABLE] = NOT_REPLICATED
            self.known.set_ids(self.by_id)

    def number_anew(self) -> None:
        """Drop tables with neither an id nor a table map, if there are many.

        The numbers of tables change.
        """
        if len(self.tables) < self._most_tables:
            return
        tables = self.tables
        used = {*self.by_id.values(), *self._by_body.values()} - {NOT_REPLICATED}
        numbers = {old: new for new, old in enumerate(sorted(used))} | {
            NOT_REPLICATED: NOT_REPLICATED
        }
        self.tables = [tables[old] for old in sorted(used)]
        self._most_tables = max(_MOST_TABLES, 2 * len(self.tables))
        for known in (self.by_id, self._by_body):
            for key, old in known.items():
                known[key] = numbers[old]
        self.known.set_ids(self.by_id)
        for number, table in enumerate(self.tables):
            self.known.set_left_out(number, table.slot.left_out)

    def _resolve(self, event: bytes) -> int:
        try:
            at = _NAMES + 1 + event[_NAMES]
            schema = event[_NAMES + 1 : at]
            end = at + 2 + event[at + 1]
            table = event[at + 2 : end]
            columns, types = packed_integer(event, end + 1)
        except IndexError as error:
            raise BinlogError("A table map event ends inside its names.") from error
        try:
            names = schema.decode(), table.decode()
        except UnicodeDecodeError as error:
            raise BinlogError("The names in a table map event are no text in UTF-8.") from error
        slot = self._route(*names, event[types : types + columns])
        if slot is None:
            return NOT_REPLICATED
        number = len(self.tables)
        self.tables.append(RoutedTable(parse_table_map(event[_BODY:]), slot))
        self.known.set_left_out(number, slot.left_out)
        return number

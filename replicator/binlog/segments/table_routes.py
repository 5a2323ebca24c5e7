"""Which target the row events of a table id belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.lengths import packed_integer
from replicator.binlog.events.table_map import TableMap, parse_table_map
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.segments.table_map_arrays import KnownTables

TABLE_ID = slice(19, 25)
"""Where table maps and row events have the table id."""

NO_TABLE = b"\xff\xff\xff\x00\x00\x00"
"""The table id of a row event without rows that only ends a statement (MySQL)."""

_BODY = 19
_NAMES = 27
"""After the table id 6 and flags 2: the names, each a length byte, text, a zero byte."""
_MOST_IDS = 10_000
_MOST_TABLES = 20_000

Route = Callable[[str, str, bytes], RouteSlot | None]
"""Where the rows of a table go, by its schema, its name and the type codes of its columns as they
stand in the table map. None where it is not replicated."""


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """A table that is replicated: its structure in the binlog and where its rows go."""

    table_map: TableMap
    slot: RouteSlot


NOT_REPLICATED = -1
"""In place of the number of a table."""


class TableRoutes:
    """The open table maps. ``by_id`` has the numbers of their tables, which are indexes into
    ``tables``, or NOT_REPLICATED; ``known`` has the same for the compiled loop.
    ``statement`` counts the statements: a table map holds for the rows of its own."""

    def __init__(self, route: Route) -> None:
        self.by_id: dict[bytes, int] = {NO_TABLE: NOT_REPLICATED}
        self.tables: list[RoutedTable] = []
        self.known = KnownTables()
        self.statement = 0
        self._route = route
        self._by_body: dict[bytes, int] = {}
        self._most_tables = _MOST_TABLES
        self.known.set_ids(self.by_id)

    def open(self, event: bytes, cut: int | None) -> None:
        """Take in a table map event; ``cut`` ends it before its checksum.

        The route is asked once per distinct table map. Raises BinlogError for a table map that
        can't be read, if the table is replicated.
        """
        body = event[25:cut]
        number = self._by_body.get(body)
        if number is None:
            number = self._by_body[body] = self._resolve(event[:cut])
        self.by_id[event[TABLE_ID]] = number
        self.known.open(event[TABLE_ID], number, body, self.statement)

    def is_mapped(self, table_id: bytes) -> bool:
        """Whether the table map of an id came in this statement."""
        return table_id == NO_TABLE or self.known.statement_of(table_id) == self.statement

    def takes(self, number: int, kind: int) -> bool:
        """Whether row events of this type go anywhere, of the table with this number."""
        return number != NOT_REPLICATED and kind not in self.tables[number].slot.left_out

    def forget(self) -> None:
        """Ask for every route again: after a statement the answers may differ."""
        self._by_body.clear()
        self.known.forget_bodies()

    def forget_ids(self) -> None:
        """Drop the table ids if they have become many; table maps precede their rows again."""
        if len(self.by_id) > _MOST_IDS:
            self.by_id.clear()
            self.by_id[NO_TABLE] = NOT_REPLICATED
            self.known.set_ids(self.by_id)

    def number_anew(self) -> None:
        """Drop tables that no id and no table map stands for any more, if they have become many.

        Their numbers change.
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

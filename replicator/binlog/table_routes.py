"""Which target the row events of a table id belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.binlog.errors import BinlogError
from replicator.binlog.lengths import packed_integer
from replicator.binlog.segment import RouteSlot
from replicator.binlog.table_map import TableMap, parse_table_map

TABLE_ID = slice(19, 25)
"""Where table maps and row events have the table id."""

NO_TABLE = b"\xff\xff\xff\x00\x00\x00"
"""The table id of a row event without rows that only ends a statement (MySQL)."""

_BODY = 19
_NAMES = 27
"""After the table id 6 and flags 2: the names, each a length byte, text, a zero byte."""
_MOST_IDS = 10_000

Route = Callable[[str, str, bytes], RouteSlot | None]
"""Where the rows of a table go, by its schema, its name and the type codes of its columns as they
stand in the table map. None where it is not replicated."""


@dataclass(frozen=True, slots=True)
class RoutedTable:
    """A table that is replicated: its structure in the binlog and where its rows go."""

    table_map: TableMap
    slot: RouteSlot


class TableRoutes:
    """The open table maps. ``by_id`` has None for tables that are not replicated."""

    def __init__(self, route: Route) -> None:
        self.by_id: dict[bytes, RoutedTable | None] = {NO_TABLE: None}
        self._route = route
        self._by_body: dict[bytes, RoutedTable | None] = {}

    def open(self, event: bytes, cut: int | None) -> None:
        """Take in a table map event; ``cut`` ends it before its checksum.

        The route is asked once per distinct table map. Raises BinlogError for a table map that
        can't be read, if the table is replicated.
        """
        body = event[25:cut]
        try:
            table = self._by_body[body]
        except KeyError:
            table = self._by_body[body] = self._resolve(event[:cut])
        self.by_id[event[TABLE_ID]] = table

    def forget(self) -> None:
        """Ask for every route again: after a statement the answers may differ."""
        self._by_body.clear()

    def forget_ids(self) -> None:
        """Drop the table ids if they have become many; table maps precede their rows again."""
        if len(self.by_id) > _MOST_IDS:
            self.by_id.clear()
            self.by_id[NO_TABLE] = None

    def _resolve(self, event: bytes) -> RoutedTable | None:
        try:
            at = _NAMES + 1 + event[_NAMES]
            schema = event[_NAMES + 1 : at]
            end = at + 2 + event[at + 1]
            table = event[at + 2 : end]
            columns, types = packed_integer(event, end + 1)
        except IndexError as error:
            raise BinlogError("A table map event ends inside its names.") from error
        slot = self._route(schema.decode(), table.decode(), event[types : types + columns])
        return None if slot is None else RoutedTable(parse_table_map(event[_BODY:]), slot)

"""Writing rows of a shard of which the target may have some already: over its own, no other's.

A shard that is copied once more has rows on the target, by an earlier chunk or by its binlog. They
look like those of another shard with the same key, which must not be lost without a word. So where
a key is there, the other shards of the target are asked whether they have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from pymysql.err import MySQLError

from replicator.downstream.rows.key_lookup import KeyFields, key_condition
from replicator.downstream.rows.statements import RowRefusedError, insert_rows
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import NO_SUCH_TABLE, ErrorCode, error_code, error_text
from replicator.mysql.names import folded
from replicator.pipeline.copy.copy_plan import TableCopy, TargetShard
from replicator.pipeline.copy.key_conflicts import key_conditions
from replicator.pipeline.copy.source_stream import SourceStream

ROWS_AT_ONCE = 500


class OwnRows:
    """Puts rows of one shard in place of those of its own that the target has.

    ``addresses`` by source. Close it in the end.
    """

    def __init__(
        self, session: Session, copy: TableCopy, addresses: Mapping[str, DatabaseAddress]
    ) -> None:
        assert copy.other_shards is not None, f"{copy} is not copied once more"
        self._session = session
        self._copy = copy
        self._other_shards = copy.other_shards
        self._addresses = addresses
        self._streams: dict[str, SourceStream] = {}
        self._open = ExitStack()
        names = [folded(column.name) for column in copy.columns]
        self._places = [names.index(folded(column.name)) for column in copy.target_key]

    def close(self) -> None:
        """Give the connections to the other shards up."""
        self._open.close()

    def write(self, lines: Sequence[bytes]) -> int:
        """Write rows; how many were there. Raises RowRefusedError, the driver's error."""
        return sum(
            self._write(lines[first : first + ROWS_AT_ONCE])
            for first in range(0, len(lines), ROWS_AT_ONCE)
        )

    def _write(self, lines: Sequence[bytes]) -> int:
        copy, there = self._copy, 0
        target = copy.target.quoted.encode()
        keys = [self._key(line) for line in lines]
        matching = key_condition(keys)
        if self._session.rows(b"SELECT 1 FROM %s WHERE %s LIMIT 1" % (target, matching)):
            own = keys
            if self._held(lines[0], keys):
                own = [k for line, k in zip(lines, keys, strict=True) if not self._held(line, [k])]
            if own:
                answer = self._session.run(
                    b"DELETE FROM %s WHERE %s" % (target, key_condition(own))
                )
                there = answer.affected
        # A row whose key another shard has, too, is refused if that one is there.
        insert_rows(self._session, copy.target, copy.columns, lines)
        return there

    def _key(self, line: bytes) -> KeyFields:
        fields = line.split(b"\t")
        return [(self._copy.columns[place], fields[place]) for place in self._places]

    def _held(self, line: bytes, keys: Sequence[KeyFields]) -> bool:
        """Whether another shard has one of the keys; ``line`` is the first of these rows."""
        for shard in self._other_shards:
            pages = (key_conditions(_by_name(key), shard.rules) for key in keys)
            found = [b" AND ".join(page) or b"TRUE" for page in pages if page is not None]
            if not found:
                continue
            table, where = shard.table.quoted.encode(), b") OR (".join(found)
            try:
                rows = self._stream(shard).rows(
                    b"SELECT 1 FROM %s WHERE (%s) LIMIT 1" % (table, where)
                )
            except MySQLError as error:
                if error_code(error) in NO_SUCH_TABLE:
                    continue
                if error_code(error) != ErrorCode.ER_BAD_FIELD_ERROR:
                    raise
                raise RowRefusedError(
                    error_code(error),
                    f"its key is there, and {shard.source}: {shard.table} can't be"
                    f" asked whether it has that key, too: {error_text(error)}",
                    line,
                    0,
                ) from error
            if rows:
                return True
        return False

    def _stream(self, shard: TargetShard) -> SourceStream:
        if shard.source not in self._streams:
            stream = self._streams[shard.source] = SourceStream(self._addresses[shard.source])
            self._open.callback(stream.close)
        return self._streams[shard.source]


def _by_name(key: KeyFields) -> dict[str, tuple[TargetColumn, bytes]]:
    return {folded(column.name): (column, field) for column, field in key}

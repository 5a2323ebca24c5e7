"""The source reader: what it deals out when the connection is lost inside a transaction."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from actors.counting.task_counts import SourceCounts
from actors.errors.faults import FatalError
from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import GroupMessage, SegmentEnd, TargetSegment, WriterMessage
from actors.reading.ddl_overrides import DdlOverrides
from actors.reading.held_targets import HeldTargets
from actors.reading.online_ddl import OnlineDdl
from actors.reading.side_effects import SideEffects
from actors.reading.source_reader import ReaderTools, SourceReader, SourceSettings
from actors.reading.statement_reader import StatementReader, StatementSettings
from actors.reading.table_gaps import TableGaps
from actors.sharding.group import GroupActor
from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.connection.server_info import ServerInfo, parse_server_info
from replicator.binlog.errors import StreamLostError
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Segment, Statement
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.ddl.online.online_ddl import GhostHistory
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.meta.statement_gtids import StatementGtidStore
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.routing.allow_list import AllowList
from replicator.routing.routes import Router, RouteRule, Routes
from replicator.schema.registry.registry import SchemaRegistry

ROUTER = Router(
    AllowList(case_sensitive=False),
    Routes((RouteRule("all", "s", "*", "m", "t"),), case_sensitive=False),
)
CREATE = Statement("s", "CREATE TABLE t1 (a INT)", 4, 7)


def segment(statement: Statement | None, *, complete: bool, end: int = 4) -> Segment:
    position = SourcePosition(BinlogPosition("bin.000000", end))
    return Segment({}, position, complete, timestamp=7, bytes=10, statement=statement)


class Streams:
    """In the place of the binlog stream: segments by connection; each then ends."""

    purged = ()

    def __init__(self, *connections: list[Segment]) -> None:
        self.connections = [list(segments) for segments in connections]
        self.go = threading.Event()
        self.go.set()

    def __call__(self, *_: object, **__: object) -> Streams:
        self.segments = self.connections.pop(0)
        return self

    def open(self) -> ServerInfo:
        return parse_server_info({"version": "10.11.6-MariaDB"})

    def close(self) -> None:
        pass

    def read_segment(self) -> Segment:
        self.go.wait(10)
        if not self.segments:
            raise StreamLostError("lost")
        return self.segments.pop(0)


def reader_of(
    monkeypatch: pytest.MonkeyPatch,
    streams: Streams,
    group: Mailbox[GroupMessage],
    writer: Mailbox[WriterMessage],
) -> SourceReader:
    """A reader of these segments; one group has all targets."""
    monkeypatch.setattr("actors.reading.source_reader.BinlogStream", streams)
    registry = SchemaRegistry()
    return SourceReader(
        SourceSettings("a", BinlogSource(DatabaseAddress("localhost", 1, "u"), 1), SegmentLimits()),
        SourcePosition(BinlogPosition("bin.000000", 4)),
        StatementReader(
            StatementSettings("a", ROUTER),
            registry,
            DdlOverrides(),
            (),
            OnlineDdl(
                "a", ROUTER, GhostHistory(), None, cast(TableGaps, SimpleNamespace(readings=0))
            ),
        ),
        ReaderTools(
            registry,
            writer,
            SourceCounts(),
            cast(SideEffects, SimpleNamespace(readings=0, close=lambda: None)),
            cast(StatementGtidStore, None),
        ),
        lambda _: cast(GroupActor, SimpleNamespace(mailbox=group)),
        HeldTargets(registry, frozenset(), drops_targets=True),
        epoch=0,
    )


async def effects_dealt(monkeypatch: pytest.MonkeyPatch, streams: Streams) -> list[int]:
    """How many effects the group gets in each of its messages."""
    group: Mailbox[GroupMessage] = Mailbox(100)
    reader = reader_of(monkeypatch, streams, group, Mailbox(100))
    with pytest.raises(IndexError), anyio.fail_after(10):
        # Until there are no more connections.
        await reader.run()
    found: list[Any] = []
    while (message := group.take()) is not None:
        found.append(message)
    return [len(m.effects) for m in found if isinstance(m, TargetSegment)]


async def test_a_statement_in_an_unfinished_transaction_is_dealt_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unfinished = segment(CREATE, complete=False)
    streams = Streams(
        [unfinished], [unfinished], [unfinished, segment(None, complete=True, end=90)]
    )
    assert await effects_dealt(monkeypatch, streams) == [1]


async def test_held_rows_are_released_between_two_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row that moves between shards must not be parted from its transaction."""
    streams = Streams([segment(CREATE, complete=False), segment(None, complete=True, end=90)])
    group: Mailbox[GroupMessage] = Mailbox(100)
    writer: Mailbox[WriterMessage] = Mailbox(100)
    reader = reader_of(monkeypatch, streams, group, writer)
    read = streams.read_segment

    def one_only() -> Segment:
        found = read()
        streams.go.clear()
        return found

    monkeypatch.setattr(streams, "read_segment", one_only)
    found: list[GroupMessage] = []

    async def read_all() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.run)
            found.append(await group.get())
            tasks.start_soon(reader.release, 5, 70)
            with anyio.move_on_after(0.2):
                await group.get()
                raise AssertionError("released inside a transaction")
            streams.go.set()
            found.append(await group.get())
            streams.go.set()

    with pytest.raises(BaseExceptionGroup) as ended, anyio.fail_after(10):
        await read_all()
    assert ended.group_contains(IndexError)  # there are no more connections
    parts = [message for message in found if isinstance(message, TargetSegment)]
    assert [(part.segment, part.release) for part in parts] == [(0, False), (2, True)]
    ends = [writer.take() for _ in range(3)]
    assert [(e.segment, e.end.binlog.offset) for e in ends if isinstance(e, SegmentEnd)] == [
        (0, 4),
        (1, 90),
        (2, 90),
    ]
    assert isinstance(ends[2], SegmentEnd)
    assert (ends[2].targets, ends[2].complete, ends[2].bytes) == (frozenset({5}), True, 70)


async def test_the_same_statement_in_another_transaction_is_dealt_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Statement("s", CREATE.sql, 90, 7)
    streams = Streams(
        [segment(CREATE, complete=False), segment(None, complete=True, end=90)],
        [segment(other, complete=True, end=150)],
    )
    assert await effects_dealt(monkeypatch, streams) == [1, 1]


async def test_a_statement_is_classified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noting(sql: str, **how: Any) -> ParsedStatement:
        asked.append(sql)
        return classify(sql, **how)

    monkeypatch.setattr("actors.reading.statement_reader.classify", noting)
    assert await effects_dealt(monkeypatch, Streams([segment(CREATE, complete=True)])) == [1]
    assert asked == [CREATE.sql]


@pytest.mark.parametrize(
    ("sql", "fault"),
    [("CREATE TABLE t1 (a INT)", True), ("FLUSH TABLES", False)],
)
async def test_a_schema_change_in_a_session_that_is_not_known_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, sql: str, fault: bool
) -> None:
    statement = Statement("s", sql, 4, 7, StatementContext(unread_code=21))
    streams = Streams([segment(statement, complete=True, end=90)])
    if fault:
        with pytest.raises(FatalError, match="code 21"):
            await effects_dealt(monkeypatch, streams)
    else:
        assert await effects_dealt(monkeypatch, streams) == []


async def test_a_reader_that_ends_while_its_rows_are_written_is_not_called_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task may go on at once, for example with other shards."""
    reader = reader_of(monkeypatch, Streams([]), Mailbox(100), Mailbox(100))
    with pytest.raises(IndexError), anyio.fail_after(10):
        await reader.run()
    assert reader.progress.state == "finishing"

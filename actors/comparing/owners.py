"""The shards that own the rows of a target, as far as a comparison knows them.

A row that only the target has is a difference only if every shard was read that can own it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

from pymysql.err import MySQLError

from actors.comparing.task_progress import TaskProgress
from replicator.binlog.positions.position import BinlogPosition
from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.schema.shard_roster import RetiredShard, TargetRoster, read_rosters
from replicator.downstream.meta.row_owners import SavedOwners, owner_row
from replicator.downstream.meta.saved_state import SavedSource
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import server_identity
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_now import (
    OwnersChangedError,
    RepairScope,
    has_other_owners,
)
from replicator.pipeline.compare.retired_rows import RowsOnTargetAlone, rows_alone
from replicator.routing.columns.row_marks import NO_MARKS, RowMarks, marks_of_rules
from replicator.routing.event_filter import FilterAction
from replicator.schema.structure.structure import Table

_REMOVING = {
    "truncate table": "TRUNCATE TABLE t",
    "drop table partition": "ALTER TABLE t DROP PARTITION p",
    "truncate table partition": "ALTER TABLE t TRUNCATE PARTITION p",
}
"""By filter name, the kind of statement that removes rows from a table."""

_DIFFERENT = {
    "missing": "the target lacks",
    "different": "are different",
    "extra": "only the target has",
}
_LEFT_OUT = {"missing": "new rows", "different": "changes", "extra": "deletions"}

UNRECORDED = (
    "the task has not saved which shards the target has had (its meta tables are gone, or another"
    " task wrote these rows), so they may be those of a shard that is gone. If the meta tables are"
    " in a backup, in another meta-schema or under another task name, restore or name them, and"
    " compare again. If no shard is gone, delete the rows yourself. Otherwise empty the target, and"
    " let the task copy all shards again (task-mode: all); that deletes the rows of shards that are"
    " gone"
)
"""Why rows that only the target has do not count as extra, and what to do."""

SHOWN = 5
"""Number of shards that a sentence names before it gives the number of the others."""


@dataclass(frozen=True, slots=True)
class TargetShards:
    """The shards of a target, as the servers have them and as the task has saved them."""

    roster: TargetRoster
    saved: SavedOwners = field(default_factory=SavedOwners)
    filtered: Mapping[str, tuple[Member, ...]] = field(default_factory=dict)
    """By kind of difference, the shards whose filters leave out statements that would prevent
    it."""
    recorded: bool = True
    """Whether the task has saved which shards the target may have rows of."""
    loaded: bool = False
    """Whether the target had, or may have had, rows before the task knew its shards."""

    @property
    def unread(self) -> str:
        """The reason why the target can't be compared; empty if all its shards can be read."""
        found = self.roster.unread
        if not found:
            return ""
        return (
            f"{_listed([str(shard) for shard in found])}. No row of the target can be called wrong"
            " before all its shards are read"
        )

    @property
    def retired(self) -> tuple[RetiredShard, ...]:
        """The shards that do not exist any more, even if there is a new table of this name."""
        there = {shard.member for shard in self.roster.shards}
        again = (
            RetiredShard(owner.member, "it was dropped, and created again")
            for owner in self.saved.owners
            if owner.ended and owner.member in there
        )
        return (*self.roster.retired, *again)

    def alone(self, target: Table) -> RowsOnTargetAlone:
        """Return how rows that only the target has are treated."""
        others = [marks_of_rules(shard.rules) for shard in self.roster.shards]
        found = rows_alone(target, self._marks(), others)
        kinds = {"extra"} if self.loaded else set[str]()
        found = replace(found, untouched=frozenset(kinds | self.filtered.keys()))
        if not found.kept and (self.roster.unseen or not self.recorded):
            return replace(found, kept="unowned")
        return found

    def _marks(self) -> list[RowMarks]:
        marks = {owner.member: owner.marks for owner in self.saved.owners}
        return [marks.get(shard.member, NO_MARKS) for shard in self.retired]

    def remark(self, result: TargetComparison, alone: RowsOnTargetAlone) -> None:
        """Add sentences about rows of shards that do not exist any more, or were not found."""
        shards = _listed([str(shard) for shard in self.retired])
        if result.retired and alone.kept == "retired":
            result.remarks.append(
                f"{result.retired:,} rows are in no shard. Shards that do not exist any more may"
                f" own them: {shards}. Nothing distinguishes their rows from rows that other shards"
                " have deleted, so none of these rows is a difference, and none is changed"
            )
        elif result.retired:
            result.remarks.append(
                f"{result.retired:,} rows are those of shards that do not exist any more: {shards}."
                " They are no difference, and are not changed"
            )
        if result.unowned and self.roster.unseen:
            result.remarks.append(
                f"{result.unowned:,} rows are in no shard that the account sees, and may be those"
                f" of a shard that it does not see: {_listed(self.roster.unseen)}. None of these"
                " rows is changed"
            )
        elif result.unowned:
            result.remarks.append(
                f"{result.unowned:,} rows are in no shard, and are not changed: {UNRECORDED}"
            )
        for kind, members in self.filtered.items():
            if number := getattr(result, kind):
                shards = _listed([str(member) for member in members])
                result.remarks.append(
                    f"No repair changes the {number:,} rows that {_DIFFERENT[kind]}: filters of the"
                    f" task file leave out {_LEFT_OUT[kind]} of {shards}"
                )
        if result.extra and self.loaded and "extra" not in self.filtered:
            result.remarks.append(
                f"No repair deletes the {result.extra:,} rows that only the target has: the target"
                " had rows before the task wrote the first one, or the task has made no full copy."
                " So they may be those of a shard that was gone before the task started. If there"
                " was none, delete them yourself"
            )

    @property
    def left_out(self) -> str:
        """Why missing or different rows can't be corrected; empty if they can be."""
        for kind in ("missing", "different"):
            if kind in self.filtered:
                shards = _listed([str(member) for member in self.filtered[kind]])
                return (
                    f"filters of the task file leave out {_LEFT_OUT[kind]} of {shards}. So rows"
                    f" that {_DIFFERENT[kind]} may be right, and are not changed"
                )
        return ""

    def scope(self, watermarks: str) -> RepairScope:
        """Return the restrictions of a repair.

        ``watermarks``: the quoted name of the watermark table.
        """
        return RepairScope(
            watermarks,
            self.saved.query,
            self.saved.rows,
            _names(shard.member for shard in self.roster.shards),
            _names(shard.member for shard in self.retired),
        )

    async def confirm(self, target: DatabaseAddress) -> None:
        """Raise OwnersChangedError if the target may have rows of other shards by now."""
        if not self.saved.query:
            return
        with closing(Connection(target)) as connection:
            rows = await connection.fetch(self.saved.query.decode())
        if has_other_owners(self.scope(""), map(owner_row, rows)):
            raise OwnersChangedError


async def shards_of_targets(
    task: TaskToCheck, progress: TaskProgress, begun_again: Collection[str] = ()
) -> Mapping[TableName, TargetShards]:
    """Return the shards of all targets of a task.

    Raises DatabaseUnavailableError of the target.

    ``begun_again``: sources whose binlogs are followed from other positions than the saved ones.
    """
    owners, saved = await progress.owners(), await progress.saved()
    members = {
        target: [owner.member for owner in found.owners] for target, found in (owners or {}).items()
    }
    # A task that makes no copy of its own finds rows on the target that it has not written.
    uncopied = saved is not None and saved.copy is None
    complete = saved is not None and not uncopied
    read = {source.source: source for source in saved.sources} if saved is not None else {}
    behind = {
        source.source_id: await _behind(source, read[source.source_id])
        for source in task.sources
        if source.source_id in read and source.source_id not in begun_again
    }
    rosters = await read_rosters(task, members, complete=complete, behind=behind)
    sources = {source.source_id: source for source in task.sources}
    found = {target: (owners or {}).get(target, SavedOwners()) for target in rosters}
    return {
        target: TargetShards(
            roster,
            found[target],
            _filtered(roster, sources),
            recorded=saved is not None and bool(found[target].query),
            loaded=uncopied if (before := found[target].before) is None else before,
        )
        for target, roster in rosters.items()
    }


async def _behind(source: SourceToCheck, saved: SavedSource) -> str:
    """Return why a source's server may lack events that the task has read; empty if it has all.

    The target would seem wrong, although it is ahead of the server.
    """
    try:
        with closing(Connection(source.address)) as connection:
            server, end = await server_identity(connection), await binlog_end(connection)
    except (DatabaseUnavailableError, MySQLError):
        return ""  # That is found where its tables are read.
    place, name = source.address, source.source_id
    if not server.is_same(saved.server):
        return (
            f"source {name}: {place.host}:{place.port} is another server ({server}) than the one"
            f" that the task has read ({saved.server}), and may lack rows that the task has"
            " applied. Run the task, which looks for its position there, then compare again"
        )
    reached = BinlogPosition.parse(saved.position)
    if end is not None and reached.file and BinlogPosition(end.file, end.offset).key < reached.key:
        return (
            f"source {name}: the binlog of {place.host}:{place.port} ends at"
            f" {end.file}:{end.offset}, before {reached}, to where the task has read it. So the"
            " server may lack rows that the task has applied. Run the task, which says what to do"
        )
    return ""


def _filtered(
    roster: TargetRoster, sources: Mapping[str, SourceToCheck]
) -> dict[str, tuple[Member, ...]]:
    """Return, by kind of difference, the shards whose filters may cause it."""
    found: dict[str, list[Member]] = {}
    for shard in roster.shards:
        for kind in _left_out(sources[shard.member.source], shard.member.name):
            found.setdefault(kind, []).append(shard.member)
    return {kind: tuple(members) for kind, members in found.items()}


def _left_out(source: SourceToCheck, name: TableName) -> Iterator[str]:
    """Yield the kinds of differences that the filters of a table cause."""
    events, expressions = source.event_filter, source.expression_filters
    rows = events.rows_left_out(*name)
    if "insert" in rows:
        yield "missing"
    if "update" in rows or expressions.of_updates(*name):
        yield "different"
    removing = (
        events.statement(name.schema, name.table, {kind}, sql).action is FilterAction.IGNORE
        for kind, sql in _REMOVING.items()
    )
    if "delete" in rows or expressions.of_deletions(*name) or any(removing):
        yield "extra"


def _names(members: Iterable[Member]) -> frozenset[tuple[str, ...]]:
    return frozenset((member.source, *member.name) for member in members)


def _listed(texts: list[str]) -> str:
    more = len(texts) - SHOWN
    return "; ".join(texts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")

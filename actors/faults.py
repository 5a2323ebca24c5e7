"""What stops a task or a part of it: a fault with everything that its operator needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from replicator.binlog.events.table_map import TableMap
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.fence import Mismatch
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.schema.registry.registry import SchemaRegistry

COPY_AGAIN = (
    "copy everything again: `replicator stop`, empty all targets of the task (drop those whose"
    " columns differ from the shards': the copy creates them), set `task-mode: all`, `replicator"
    " remove TASK.yaml`, then `replicator run TASK.yaml`"
)
"""The remedy if the rows can't get to the target in another way."""


def begin_again(source: str) -> str:
    """Return the command that begins a source at its present position, with its effect."""
    return (
        f"`replicator recopy TASK --source {source}` (`task-mode: all`): the task follows the"
        " source from the present end of its binlog, and corrects the rows of its targets."
        " Readers see all rows meanwhile."
    )


START_OVER = (
    "`replicator stop`, empty all targets of the task, set `task-mode: all` or `full`"
    " (`incremental` would leave the older rows out), `replicator remove TASK.yaml`, then"
    " `replicator run TASK.yaml`"
)
"""The remedy if the saved state of a task can't be used any more."""

TAKE_THE_ROW = (
    "change the target's table so that it takes the row: give the column that the error names the"
    " type and the attributes that it has in the shard, or drop the trigger, the check or the"
    " foreign key that the error names. Do not delete or change rows. Then `replicator resume`. If"
    " somebody had changed the column while the target had rows, these may have lost values:"
    " `replicator compare TASK.yaml --repair-now` puts them right"
)
"""The remedy for a row that the target refuses."""

MOVED_ROWS = (
    "wait until no lock holds rows of the former target, so that all rows of the shard are there."
    " Move them by hand to the new target, in a session with `SET SESSION foreign_key_checks=0`, so"
    " that no foreign key changes rows of other tables; first give that target the columns of the"
    " shard that it lacks. Then `replicator binlog skip` and `replicator resume`: the shard belongs"
    " to the new target from then on. If you skip without moving the rows, later updates and"
    " deletes of them find nothing. Not if the former target has lost a column that the shard has,"
    " or rows of the shard are still to be copied: their values are not there"
)
"""The remedy for a shard that a rename gives another target."""


def start_after(meta: str) -> str:
    """The remedy of starting after an event, once its effect has been made by hand.

    ``meta`` is the start position for its source in the task file. It is valid only if everything
    that was read is on the targets, and nothing after the saved positions. Both hold after an
    ordinary stop, unless rows are held. So no safe mode is needed, which would hide duplicates.
    """
    return (
        "`replicator stop` (do not kill the process); in the task file set `task-mode:"
        f" incremental`, {meta}, and `meta:` of every other source to its saved position"
        " (`replicator status TASK.yaml --json` shows it after the stop); then `replicator run"
        " --remove-meta TASK.yaml`. It is refused (`task.state-needed`) while a schema change waits"
        " for shards, a target is blocked, a copy has not finished, two shards have a row with the"
        " same key, or a start is before rows that are on the targets"
    )


def copy_target_again(target: TableName) -> str:
    """The remedy of copying one target from its shards."""
    return (
        f"copy the target again: `replicator recopy TASK --target {target} --truncate` (for a task"
        " with `task-mode: all`, whose schema changes of this target are all complete). If that is"
        f" refused, {COPY_AGAIN}"
    )


@dataclass(frozen=True, slots=True)
class DdlEvent:
    """The statement of a binlog that a fault is about. The operator can override it.

    ``actions`` are the overrides that help.
    """

    source: str
    position: BinlogPosition
    actions: tuple[OverrideAction, ...]


SKIP = (OverrideAction.SKIP,)
REPLACE = (OverrideAction.REPLACE,)
SKIP_OR_REPLACE = (*SKIP, *REPLACE)
"""What helps against most faults: the actions of `DdlEvent`."""


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """The rows that a fault is about. The operator can declare their structure.

    Attributes:
        member: the shard.
        at: key of the position of the event group with the first of these rows.
        table_map: the table map of their events.
    """

    member: Member
    at: int
    table_map: TableMap


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a task that can be blocked while all others continue.

    The task holds the rows of a blocked target, and does not read a blocked source.
    """

    targets: frozenset[TableName] = frozenset()
    sources: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.targets or self.sources)


def of_target(*names: TableName) -> Parts:
    """The scope of a fault that concerns these targets only."""
    return Parts(targets=frozenset(names))


def of_source(source: str) -> Parts:
    """The scope of a fault that keeps one source from being read."""
    return Parts(sources=frozenset({source}))


class Recovery(Enum):
    """How a task gets over a fault."""

    BY_OPERATOR = auto()
    """The operator applies a remedy, and resumes."""
    NONE = auto()
    """This process can't go on, whatever the operator does."""
    FAILOVER = auto()
    """Another server answers for a source: a new run searches for its position there."""
    RETRY = auto()
    """Only a lock of another session is in the way: the task tries the parts again."""


class FatalError(Exception):
    """A fault: to continue would lose, duplicate or corrupt rows.

    Attributes:
        event: a stable name.
        message: the cause, for the operator.
        remedies: what the operator can do, besides overriding the statement that the fault is
            ``about``, or declaring the structure of these rows.
        where: source, target and position, as far as known.
        scope: the parts of the task that are blocked; None for the whole task.
        about: the statement or the rows.
        recovery: as `Recovery`.
    """

    def __init__(
        self,
        event: str,
        message: str,
        *remedies: str,
        where: str,
        scope: Parts | None = None,
        about: DdlEvent | UnreadRows | None = None,
        recovery: Recovery = Recovery.BY_OPERATOR,
    ) -> None:
        super().__init__(message)
        self.event = event
        self.message = message
        self.where = where
        self.remedies = remedies
        self.scope = scope
        self.about = about
        self.recovery = recovery

    def __str__(self) -> str:
        ways = "".join(f"\n  - {way}" for way in self.remedies)
        return f"{self.message}\n  where: {self.where}" + (f"\n  remedies:{ways}" if ways else "")


class TransientError(Exception):
    """The source, the target or Spark is unavailable for now; trying again is safe."""


class LostCommitsError(TransientError):
    """The target has lost its last commits. The task reads everything after them again."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(f"the target has lost its last commits: {mismatch}")
        self.mismatch = mismatch


class SourceMovedError(TransientError):
    """Another server has taken over a source. The task searches for its position there."""


class SparkFailedError(TransientError):
    """Spark failed or was lost during a job of the task. The job itself may be the reason."""


class ApplicationLostError(TransientError):
    """The cluster's master does not know the task's application any more. Spark starts again."""


class ExecutorError(SparkFailedError):
    """Python raised an unexpected error in an executor. The next attempt may raise it again.

    ``text`` is the error itself, without the traceback.
    """

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


def refuse_clash(registry: SchemaRegistry, target: TableName, who: str) -> None:
    """Raise FatalError if a target differs from another one only in case, and its server ignores
    case.

    ``who``: the shard or database that is routed there.
    """
    other = registry.clash(target)
    if other is None:
        return
    name = str(target) if target.table else target.schema
    raise FatalError(
        "target.same-table",
        f"the target {name} is also spelled {other}, and its server takes both for one table"
        " (lower_case_table_names). The task would count the schema changes and rows of one table"
        " as those of two",
        "use one spelling in target-schema and target-table under `routes:`. A table or"
        " database without a route keeps its name: give it a route (for a database, one"
        " without table-pattern). Then `replicator reload`",
        where=f"{who}, target {name}",
    )

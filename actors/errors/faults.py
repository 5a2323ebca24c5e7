"""The errors that stop a task or a part of it; a fault has all that its operator needs to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from replicator.binlog.events.table_map import TableMap
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.fence import Mismatch
from replicator.events.fault_catalogue import FAULT_SECTIONS, filled
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.schema.registry.registry import SchemaRegistry


@dataclass(frozen=True, slots=True)
class DdlEvent:
    """The statement in a binlog that a fault concerns. The operator can override it.

    ``actions`` are the overrides that help; `fault` takes them from the catalogue.
    """

    source: str
    position: BinlogPosition
    actions: tuple[OverrideAction, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """The rows that a fault concerns. The operator can declare their structure.

    Attributes:
        member: the shard.
        at: key of the position of the event group with the first of these rows.
        table_map: the table map of their events.
    """

    member: Member
    at: int
    table_map: TableMap


@dataclass(frozen=True, slots=True)
class TaskParts:
    """Parts of a task that can be blocked while all other parts continue.

    The task holds the rows of a blocked target, and does not read a blocked source.
    """

    targets: frozenset[TableName] = frozenset()
    sources: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether there are any parts."""
        return bool(self.targets or self.sources)


def of_target(*names: TableName) -> TaskParts:
    """Return the scope of a fault that concerns only these targets."""
    return TaskParts(targets=frozenset(names))


def of_source(source: str) -> TaskParts:
    """Return the scope of a fault that keeps one source from being read."""
    return TaskParts(sources=frozenset({source}))


class Recovery(Enum):
    """How a task recovers from a fault."""

    BY_OPERATOR = auto()
    """The operator applies a remedy, and resumes."""
    OPERATOR_OR_RETRY = auto()
    """The operator applies a remedy; the task also tries again by itself."""
    NONE = auto()
    """This process can't continue, whatever the operator does."""
    FAILOVER = auto()
    """Another server answers for a source: a new run searches for its position there."""
    RETRY = auto()
    """Only a lock of another session prevents the work: the task tries again."""


class FatalError(Exception):
    """A fault: continuing would lose, duplicate or corrupt rows.

    Attributes:
        event: a stable name.
        message: the cause, for the operator.
        remedies: what the operator can do. Overriding the statement, or declaring the structure of
            the rows, that the fault is ``about`` is not among them.
        where: source, target and position, as far as known.
        scope: the parts of the task that are blocked; None for the whole task.
        about: the statement or the rows that the fault concerns.
        recovery: how the task recovers.
    """

    def __init__(
        self,
        event: str,
        message: str,
        *remedies: str,
        where: str,
        scope: TaskParts | None = None,
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
        remedies = "".join(f"\n  - {remedy}" for remedy in self.remedies)
        listed = f"\n  remedies:{remedies}" if remedies else ""
        return f"{self.message}\n  where: {self.where}{listed}"


def fault(
    event: str,
    case: str = "",
    *,
    scope: TaskParts | None = None,
    about: DdlEvent | UnreadRows | None = None,
    recovery: Recovery = Recovery.BY_OPERATOR,
    **fields: object,
) -> FatalError:
    """Return a fault of the catalogue (`replicator/events/faults.yaml`).

    Args:
        event: its name.
        case: the variant of the fault, if it has several.
        scope: as in `FatalError`. By default the ``target`` or ``source`` among the fields, if the
            catalogue says that the fault blocks a target or a source.
        about: as in `FatalError`; the actions of a statement come from the catalogue.
        fields: the values of all fields of its templates.
    """
    section = FAULT_SECTIONS[event]
    kind = section.cases[case]
    if scope is None and section.blocks == "target":
        target = fields["target"]
        assert isinstance(target, TableName)
        scope = of_target(target)
    elif scope is None and section.blocks == "source":
        scope = of_source(str(fields["source"]))
    if isinstance(about, DdlEvent):
        about = replace(about, actions=tuple(map(OverrideAction, kind.answers)))
    return FatalError(
        event,
        filled(kind.message, fields),
        *(text for remedy in kind.remedies for text in remedy.rendered(fields)),
        where=filled(kind.where, fields),
        scope=scope,
        about=about,
        recovery=recovery,
    )


class TransientError(Exception):
    """The source, the target or Spark is unavailable at present; it is safe to try again."""


class LostCommitsError(TransientError):
    """The target has lost its last commits. The task reads everything after them again."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(f"the target has lost its last commits: {mismatch}")
        self.mismatch = mismatch


class SourceMovedError(TransientError):
    """Another server has replaced a source. The task searches for its position there."""


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
    """Raise FatalError if two targets differ only in case and their server ignores case.

    ``who``: the shard or database that is routed to the target.
    """
    other = registry.clash(target)
    if other is not None:
        name = str(target) if target.table else target.schema
        raise fault("target.same-table", target=name, other=other, who=who)

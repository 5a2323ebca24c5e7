"""The conditions of a switch, and the choice of the targets to compare during it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.names import TableName
from replicator.status import TaskStatus
from replicator.switch.certificate import TargetPosition
from replicator.switch.numbering import Numbering, following, room

BUDGET = 2.0
"""Maximum number of seconds for comparing whole targets again while the sources are read-only."""

_TASK, _TARGET = CheckedPart("task"), CheckedPart("target")


def task_findings(status: TaskStatus) -> Iterator[CheckResult]:
    """Yield the conditions of a switch that concern the task's state."""
    name = status.task
    if status.state != "running":
        resume = (f"`replicator resume {name}`",) if status.state == "paused" else ()
        yield _TASK.failed(
            "task", f"the task is {status.state}", *resume, f"`replicator status {name}` shows why"
        )
    for lock in status.locks:
        yield _TASK.failed(
            "locks",
            f"the lock {lock.id} is open: {lock.ddl}",
            f"`replicator show-ddl-locks {name}` names the shards that lack the statement",
        )
    for part in status.blocked:
        why = part.error.message if part.error else "by the operator"
        yield _TASK.failed(
            "blocked",
            f"the {part.kind} {part.name} is blocked: {why}",
            f"`replicator status {name}` shows what to do",
        )
    for entry in status.reconciling:
        yield _TASK.failed(
            "reconciling", str(entry), f"wait until `replicator status {name}` does not show it"
        )
    if status.copy is not None and (status.copy.state != "finished" or status.copy.held):
        yield _TASK.failed(
            "copy",
            f"the full copy is {status.copy.state}",
            f"`replicator wait {name}` returns when everything is applied",
        )
    for shard in status.unreadable:
        yield _TASK.failed("shards", str(shard), shard.remedy or "make the shard readable")
    for source in status.sources:
        if source.prepared:
            yield _TASK.failed(
                "prepared",
                f"{source.source} has {len(source.prepared)} prepared XA transactions, whose rows"
                " the targets do not have",
                "XA COMMIT or XA ROLLBACK them (XA RECOVER lists them)",
            )
    validation = status.validation
    if validation is not None and validation.errors:
        yield _TASK.failed(
            "validation",
            f"{validation.errors:,} rows differ from those of their shards",
            f"`replicator validation show-error {name}`",
        )
    if not status.sources and status.state == "running":
        yield _TASK.failed("task", "the task follows no source", "use task-mode all or incremental")


def verification_findings(
    status: TaskStatus, targets: Collection[TableName]
) -> Iterator[CheckResult]:
    """Yield when each target was last verified. The switch compares all targets in any case."""
    known = {entry.target: entry for entry in status.verified if entry.at is not None}
    if left := sum(str(target) not in known for target in targets):
        yield _TARGET.passed(
            "verified",
            f"{left:,} of {len(targets):,} targets were not verified while the task ran: the switch"
            " compares all rows of each target before it makes the sources read-only",
        )
    for target in sorted(targets):
        entry = known.get(str(target))
        if entry is None:
            continue
        if entry.differing:
            yield _TARGET.failed(
                "verified",
                str(entry),
                f"`replicator compare TASK.yaml --tables {target}` shows the rows",
                f"`replicator reconcile {status.task} --target {target}` corrects them",
            )
        else:
            yield _TARGET.passed("verified", str(entry))


def numbering_finding(
    target: TableName, own: Numbering | None, shards: Mapping[str, int]
) -> CheckResult | None:
    """Return whether a target can continue the numbers of its shards; None without any numbers."""
    if own is None:
        if not shards:
            return None
        return _TARGET.warning(
            "auto-increment",
            f"{target} has no AUTO_INCREMENT column, and {len(shards)} of its shards have one: the"
            " application must give each new row its key",
            f"`ALTER TABLE {target.quoted} MODIFY … AUTO_INCREMENT`, if the application needs it",
        )
    wanted = following(own, shards)
    if own.largest and wanted >= own.largest:
        return _TARGET.failed(
            "auto-increment",
            f"{target} can't take new rows: {room(own, wanted)}",
            f"`ALTER TABLE {target.quoted} MODIFY {own.column} BIGINT UNSIGNED AUTO_INCREMENT`",
        )
    if scarce := room(own, wanted):
        return _TARGET.warning("auto-increment", f"{target}: {scarce}", "widen the column")
    text = f"{target} continues at {wanted:,}"
    if own.following < wanted:
        text += f" (now {own.following:,}; the switch sets it)"
    return _TARGET.passed("auto-increment", text)


def way_back_finding(
    position: TargetPosition, account: str, unlogged: Sequence[TableName] = ()
) -> CheckResult:
    """Return whether the changes of the targets after the switch can be read from their binlog.

    Args:
        position: the present end of the target's binlog.
        account: the account of the task on the target, as the server names it.
        unlogged: the targets with foreign keys that change rows without a record in the binlog.
    """
    readable = position.file and not position.remark
    if readable and unlogged:
        return _TARGET.warning(
            "way back",
            f"foreign keys change rows of {', '.join(map(str, unlogged))}, and the target's server"
            " does not log it: `replicator changes --since-switch` names each such change in"
            " unplaced.sql, and makes no statement for the shards",
            "If you may want to go back, let the application change these rows itself, with a key"
            " that is RESTRICT",
        )
    if readable:
        return _TARGET.passed(
            "way back", f"the target writes its binlog, now at {position.file}:{position.offset}"
        )
    remedies: tuple[str, ...] = ("log_bin, binlog_format = ROW, binlog_row_image = FULL",)
    if not position.file and "denied" in position.remark:
        remedies = (
            f"MariaDB: GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {account};",
            f"MySQL: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account};",
        )
    return _TARGET.warning(
        "way back",
        f"{position.remark}: `replicator changes --since-switch` will not be able to write the"
        " changes of the targets for the shards, and after the switch it is too late to allow it",
        *remedies,
    )


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The comparison of a target before the sources became read-only.

    Attributes:
        seconds: duration of the comparison.
        keyed: whether changed rows are compared by their keys.
    """

    target: TableName
    seconds: float
    keyed: bool


def compared_whole(
    rehearsed: Sequence[Rehearsed], *, skipped: int, budget: float = BUDGET
) -> tuple[TableName, ...]:
    """Return the targets of which all rows are compared again while the sources are read-only.

    These are the targets whose changed rows can't be compared by their keys, and further targets,
    in the order of their size, as far as the budget allows.

    Args:
        skipped: number of changed rows, of any target, that the validation skipped.
    """
    needed = [one.target for one in rehearsed if skipped or not one.keyed]
    left = budget
    for one in sorted(rehearsed, key=lambda one: one.seconds):
        left -= one.seconds
        if left >= 0 and one.target not in needed:
            needed.append(one.target)
    return tuple(sorted(needed))

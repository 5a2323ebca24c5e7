"""The steps of a switch, from the rehearsal to the certificate; each can be aborted.

Before the sources are read-only, all targets are compared, and the task starts to validate each row
that it applies. So only rows that are not yet applied then have to be compared while the sources
are read-only.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import anyio
from pymysql.err import MySQLError
from pyspark import SparkContext

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.comparing.kept_comparison import KeptComparison
from actors.comparing.target_run import ComparisonView
from actors.control.client import NotRunningError
from actors.control.protocol import ControlError
from actors.control.requests import command, status_of
from actors.control.waiting import Waited, wait_until
from actors.saved.retired_shards import retirements_of, without_retired
from actors.setup.task_setup import address_of
from actors.switching.certifying import (
    SwitchedRows,
    executed_statements,
    made_certificate,
    raise_numbers,
    target_position,
)
from actors.switching.freeze import Freezer
from actors.switching.survey import Survey, survey
from config.models import Task
from replicator.checks.connecting import account_of
from replicator.checks.result import CheckResult
from replicator.downstream.meta.switch_records import SwitchRecord, read_switch
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.mysql.session_context.session_defaults import NATIVE_FOREIGN_KEYS
from replicator.pipeline.compare.findings import TargetComparison
from replicator.status import TaskStatus, ValidationStatus
from replicator.switch.certificate import SwitchCertificate
from replicator.switch.readiness import (
    Rehearsed,
    compared_whole,
    task_findings,
    verification_findings,
    way_back_finding,
)

LOOK_SECONDS = 0.1
"""Seconds between two checks of the task or the sources."""

TELL_SECONDS = 5.0
"""Seconds between two output lines about the same step."""

DRAIN_SECONDS = 30.0
"""Maximum wait for the validation before the freeze, in seconds."""

STEADY_SECONDS = 10.0
"""The wait before the freeze ends if the rows to validate do not decrease for this many seconds.

Their number decreases at the end of each round of the validation, which may take seconds.
"""

START_SECONDS = 120.0
"""Maximum number of seconds until the task runs again after a request."""


class SwitchError(Exception):
    """A switch is not possible, or was aborted; everything continues as before.

    Attributes:
        remedies: what the operator can do.
    """

    def __init__(self, message: str, *remedies: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedies = remedies


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """The request of the operator.

    Attributes:
        freeze: whether the command itself makes the sources read-only.
        timeout: maximum time in seconds in which the sources are read-only before the end.
    """

    freeze: bool = False
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class Switched:
    """The result of a switch.

    Attributes:
        seconds: time from the freeze to the end; None if the switch had ended before.
    """

    certificate: SwitchCertificate
    seconds: float | None = None


class _NotKept:
    """Saves nothing of a comparison, because a new switch starts the comparison again."""

    async def load(self, asked: str) -> KeptComparison | None:
        del asked
        return None

    async def save(self, kept: KeptComparison) -> None:
        pass

    async def remove(self) -> None:
        pass


@dataclass(slots=True)
class _Told(ComparisonView):
    """Reports each target whose comparison has ended."""

    tell: Callable[[str], None]
    targets: int
    _ended: int = field(default=0, init=False)

    def finished(self, result: TargetComparison) -> None:
        self._ended += 1
        self.tell(
            f"{result.target} is compared: {result.rows:,} rows in {result.seconds:.1f} s"
            f" ({self._ended:,} of {self.targets:,} targets)"
        )


async def switch_record(task: Task) -> SwitchRecord:
    """Read what a switch of the task has saved.

    Raises DatabaseUnavailableError and the server's error.
    """
    with closing(Connection(address_of(task.target_database))) as connection:
        return await read_switch(connection, task.meta_schema, task.name)


async def checked(task: Task, *, freeze: bool, rehearsal: bool) -> tuple[Survey, list[CheckResult]]:
    """Make all checks of a switch.

    Raises NotRunningError, ControlError, RouteError, DatabaseUnavailableError and a server's error.

    Args:
        freeze: whether the command itself makes the sources read-only. A rehearsal without it warns
            if the accounts may not do this.
    """
    status = await status_of(task.name)
    found = await survey(task)
    results = [
        *task_findings(status),
        *verification_findings(status, found.targets.keys()),
        *found.numbering_findings(),
        *await found.object_findings(),
        await _way_back(found),
    ]
    if freeze or rehearsal:
        results += await Freezer(found.sources).findings(needed=freeze)
    return found, results


async def _way_back(found: Survey) -> CheckResult:
    position = await target_position(found.target)
    acting = [
        name
        for name, target in sorted(found.targets.items())
        if target.table and any(key.acts for key in target.table.definition.foreign_keys)
    ]
    with closing(Connection(found.target)) as connection:
        native = await connection.fetch(NATIVE_FOREIGN_KEYS)
        unlogged = [] if [value for _, value in native] == ["OFF"] else acting
        return way_back_finding(position, (await account_of(connection)).name, unlogged)


async def abort(task: Task) -> bool:
    """Undo what an unfinished switch has set; return whether there was anything to undo.

    Raises SwitchError, FreezeError, DatabaseUnavailableError and a server's error.
    """
    record = await switch_record(task)
    if record.finished:
        raise SwitchError(
            f"the switch of task {task.name} is finished, and can't be aborted any more",
            "to use the shards again: `replicator run TASK.yaml --reopen`, then"
            " `replicator switch TASK.yaml --abort`",
        )
    followed = without_retired(task, await retirements_of(task))
    sources = {
        instance.source_id: address_of(followed.source(instance.source_id).connection)
        for instance in followed.mysql_instances
    }
    await Freezer(sources, record.frozen).thaw()
    # A task that does not run keeps the record; the next switch removes it.
    with suppress(NotRunningError):
        await command(task.name, "switch", {"action": "end"})
    return bool(record.frozen)


@dataclass(slots=True)
class Switch:
    """One switch.

    Attributes:
        tell: reports a step to the operator.
    """

    task: Task
    options: SwitchOptions
    spark: Callable[[], Awaitable[SparkContext]]
    tell: Callable[[str], None]
    _freezer: Freezer = field(init=False)
    _asked: bool = field(default=False, init=False)
    _begun: float = field(default=0.0, init=False)

    async def run(self) -> Switched:
        """Make the switch. Raises SwitchError, FreezeError and the errors of `checked`."""
        await abort(self.task)
        # This may have started a new run.
        with anyio.move_on_after(START_SECONDS):
            while True:
                if (await status_of(self.task.name)).state != "starting":
                    break
                await anyio.sleep(LOOK_SECONDS)
        self.tell("making the checks")
        found, results = await checked(self.task, freeze=self.options.freeze, rehearsal=False)
        warnings = sum(result.state == "warning" for result in results)
        self.tell(
            f"{len(results):,} checks made of {len(found.targets):,} targets and"
            f" {len(found.sources):,} sources, {warnings:,} with a warning (--dry-run shows them)"
        )
        if failed := [result for result in results if result.state == "failed"]:
            raise SwitchError(
                f"the switch was not begun: {'; '.join(r.finding for r in failed)}",
                *dict.fromkeys(way for result in failed for way in result.remedies),
            )
        self._freezer = Freezer(found.sources)
        try:
            return await self._switch(found)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._undo()
            raise

    async def _undo(self) -> None:
        if self._asked:
            # If the task has saved its end, rows of the shards do not reach the target any more.
            try:
                if (await switch_record(self.task)).finished:
                    return
            except (DatabaseUnavailableError, MySQLError) as error:
                raise SwitchError(
                    f"it is not known whether the task has saved its end: {error}. The sources"
                    " stay read-only",
                    "`replicator switch TASK.yaml` again, when the target can be reached: it shows"
                    " the certificate, or begins again",
                ) from error
        try:
            await self._freezer.thaw()
        finally:
            with suppress(NotRunningError, ControlError):
                await command(self.task.name, "switch", {"action": "end"})
        self.tell("aborted: the task and its sources continue as before")

    async def _switch(self, found: Survey) -> Switched:
        self.tell("waiting until the task validates the rows that it applies")
        await command(self.task.name, "switch", {"action": "begin"})
        status = await self._running_again()
        statements = await executed_statements(self.task)
        self.tell(
            f"comparing all rows of {len(found.targets):,} targets, while the task validates the"
            " rows that it applies"
        )
        keyless = {name for name, target in found.targets.items() if not target.keyed}
        results = await self._compared(tuple(found.targets), again=keyless)
        compared_at = datetime.now(UTC)
        await self._drained(status.pid)
        reach(Failpoint.SWITCH_REHEARSED)
        await self._freeze()
        frozen_at = datetime.now(UTC)
        with anyio.move_on_after(self.options.timeout) as scope:
            rows = SwitchedRows(results, compared_at, frozen_at)
            certificate = await self._frozen(found, rows, status, statements)
            return Switched(certificate, self._elapsed())
        assert scope.cancelled_caught
        raise SwitchError(
            f"aborted: the sources were read-only for {self.options.timeout:g} s, and not"
            " everything was applied and compared",
            f"`replicator wait {self.task.name}` shows what the task waits for",
            "a longer --timeout",
        )

    async def _frozen(
        self,
        found: Survey,
        rows: SwitchedRows,
        before: TaskStatus,
        statements: Mapping[TableName, int],
    ) -> SwitchCertificate:
        """Carry out everything that happens while the sources are read-only."""
        skipped = before.validation.skipped if before.validation else 0
        while True:
            self.tell(f"waiting until the task has applied {len(found.sources):,} binlogs")
            waited = await self._applied()
            self.tell(f"everything is applied after {self._elapsed():.1f} s")
            reach(Failpoint.SWITCH_APPLIED)
            left_out, skipped_by_now = await self._validated(before.pid)
            changed = await executed_statements(self.task)
            rehearsed = [
                Rehearsed(
                    name,
                    result.seconds,
                    target.keyed
                    and changed.get(name) == statements.get(name)
                    and not any(text.startswith(f"{name}: ") for text in left_out),
                )
                for name, target in found.targets.items()
                if (result := rows.before.get(name)) is not None
            ]
            whole = compared_whole(rehearsed, skipped=skipped_by_now - skipped)
            self.tell(f"the changed rows are compared after {self._elapsed():.1f} s")
            if whole:
                self.tell(f"comparing all rows of {len(whole):,} targets once more")
            again = await self._compared(whole) if whole else {}
            reach(Failpoint.SWITCH_COMPARED)
            self.tell("setting AUTO_INCREMENT of the targets")
            await found.read_numbers()
            rows = replace(rows, frozen=again, numbers=await raise_numbers(found))
            self.tell(f"AUTO_INCREMENT of {len(rows.numbers):,} targets is set")
            # A privileged client may write in spite of `read_only`.
            if not await self._freezer.written_since(waited.until):
                break
            self.tell("a source was written to although it is read-only; waiting again")
        self.tell("writing the certificate, and ending the task")
        certificate = await made_certificate(self.task, found, waited, rows, self._freezer.frozen)
        reach(Failpoint.SWITCH_CERTIFIED)
        text = certificate.to_json()
        # From here on, an abort would leave the operator in doubt.
        self._asked = True
        with anyio.CancelScope(shield=True):
            try:
                await command(self.task.name, "switch", {"action": "finish", "certificate": text})
            except (ControlError, NotRunningError):
                # The task may have ended after it saved its end and before it answered.
                if not (await switch_record(self.task)).finished:
                    raise
            with suppress(DatabaseUnavailableError, MySQLError):
                if late := await self._freezer.written_since(waited.until):
                    self.tell(
                        f"written to in spite of `read_only`, after the end in the certificate:"
                        f" {', '.join(late)}. The targets lack these changes: `replicator run"
                        " TASK.yaml --reopen`, and switch again"
                    )
        return certificate

    def _elapsed(self) -> float:
        """Return how long the sources have been read-only, in seconds."""
        return time.monotonic() - self._begun

    async def _freeze(self) -> None:
        """Make the sources read-only, or wait until they are."""
        if self.options.freeze:
            frozen = await self._freezer.plan()
            await command(self.task.name, "switch", {"action": "freeze", "frozen": frozen})
            self._begun = time.monotonic()
            self.tell(f"making {len(frozen):,} sources read-only")
            await self._freezer.freeze(max(1, int(self.options.timeout)))
            reach(Failpoint.SWITCH_FROZEN)
            self.tell("the sources are read-only")
        told: list[str] = []
        while writable := await self._freezer.writable():
            if writable != told:
                self.tell(f"waiting until these sources are read-only: {', '.join(writable)}")
            told = writable
            await anyio.sleep(LOOK_SECONDS)
        self._begun = self._begun or time.monotonic()

    async def _running_again(self) -> TaskStatus:
        with anyio.move_on_after(START_SECONDS):
            while True:
                with suppress(ControlError):
                    status = await status_of(self.task.name)
                    if status.state == "running":
                        return status
                await anyio.sleep(LOOK_SECONDS)
        raise SwitchError("the task has not begun to validate its rows: see its log")

    async def _applied(self) -> Waited:
        waited = await wait_until(self.task.name, ["now"], self.options.timeout)
        if not waited.reached:
            raise SwitchError(
                f"not everything is applied: {'; '.join(waited.reasons)}",
                f"`replicator status {self.task.name}` shows what to do",
            )
        return waited

    async def _drained(self, pid: int) -> None:
        """Wait until the task has caught up, and few of its rows wait for validation.

        Every row that waits at the freeze makes the freeze longer. While the application writes,
        some rows always wait, so this wait ends when their number no longer decreases.
        """
        self.tell("waiting until the task has caught up, before the sources become read-only")
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._applied()
            fewest = _rows_to_validate(await self._validation(pid))
            since = time.monotonic()
            while fewest and time.monotonic() - since < STEADY_SECONDS:
                await anyio.sleep(LOOK_SECONDS)
                waiting = _rows_to_validate(await self._validation(pid))
                if waiting < fewest:
                    fewest, since = waiting, time.monotonic()

    async def _validated(self, pid: int) -> tuple[tuple[str, ...], int]:
        """Wait until each changed row is compared.

        Return the targets that can't be validated, and the number of skipped keys.
        """
        told_at = 0.0
        while True:
            validation = await self._validation(pid)
            waiting = _rows_to_validate(validation)
            if not waiting:
                return validation.left_out, validation.skipped
            if time.monotonic() - told_at >= TELL_SECONDS:
                told_at = time.monotonic()
                self.tell(f"waiting until {waiting:,} changed rows are compared")
            await anyio.sleep(LOOK_SECONDS)

    async def _validation(self, pid: int) -> ValidationStatus:
        """Return the state of the validation in the process ``pid``.

        Raises SwitchError if rows differ, or the task was started again.
        """
        status = await status_of(self.task.name)
        validation = status.validation
        if validation is None or status.pid != pid:
            raise SwitchError(
                "the task was started again meanwhile, and does not validate its rows",
                "`replicator switch TASK.yaml` again",
            )
        if validation.errors:
            raise SwitchError(
                f"{validation.errors:,} changed rows differ from those of their shards",
                f"`replicator validation show-error {self.task.name}`",
            )
        return validation

    async def _compared(
        self, targets: tuple[TableName, ...], again: Collection[TableName] = ()
    ) -> Mapping[TableName, TargetComparison]:
        """Compare all rows of targets. Raises SwitchError if they differ.

        `again`: targets whose rows are all compared once more while the sources are read-only.
        """
        options = CompareOptions(targets=targets)
        view = _Told(self.tell, len(targets))
        comparer = TargetComparer(self.task, options, self.spark, view, keeper=_NotKept())
        results = await comparer.run()
        for one in results:
            if not may_switch(one, again=one.target in again):
                raise SwitchError(
                    f"{one.target} and its shards are not equal: {_difference(one)}",
                    f"`replicator compare TASK.yaml --tables {one.target}` shows the rows",
                )
        return {one.target: one for one in results}


def may_switch(found: TargetComparison, *, again: bool) -> bool:
    """Return whether a comparison allows the switch to continue.

    Rows that are unsettled because the application writes are decided later, if the target is
    compared ``again`` while the application can't write.
    """
    if again:
        found = replace(found, unsettled=0)
    return not (found.unequal or found.incomplete or found.held)


def _rows_to_validate(validation: ValidationStatus) -> int:
    """Return the number of changed rows that are not known to be equal yet."""
    return validation.waiting + validation.suspects


def _difference(found: TargetComparison) -> str:
    counts = ("missing", "extra", "different", "held", "unowned")
    named = [f"{getattr(found, n):,} rows {n}" for n in counts if getattr(found, n)]
    named += [found.failure, found.blocked, *found.structure, found.unsettled_remark]
    named += [f"{out.column} is not compared: {out.why}" for out in found.left_out]
    return "; ".join(filter(None, named))

"""The checks that a task must pass when its process starts, before it writes anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

import structlog

from actors.errors.faults import FatalError, TransientError, fault
from actors.setup.task_setup import SourceSetup, address_of, source_setups
from actors.task.resources.unavailable_sources import UnavailableSources, lets_in
from actors.task.startup.check_scope import task_to_check
from config.models import Task
from replicator.checks.check_items import CONNECTION, READ_ONLY, SPARK_MASTER
from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.result import CheckResult
from replicator.checks.run.all_checks import run_checks
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError

log = structlog.get_logger()


class PrecheckError(Exception):
    """The task can't run at present.

    ``results`` has the results of all checks, including passed ones.
    """

    def __init__(self, results: list[CheckResult]) -> None:
        self.results = results
        self.failed = [result for result in results if result.state == "failed"]
        failures = (f"{result.where}: {result.name}: {result.finding}" for result in self.failed)
        super().__init__("the task can't run: " + "; ".join(failures))


_PASSING = (CONNECTION, READ_ONLY)
"""The checks whose failure is temporary: a task that has run before waits for the server."""


class Prechecks:
    """Makes the checks of a task, and of each source once the source can be checked.

    ``former``: the task with which this process has read its sources so far.
    """

    def __init__(self, task: Task, away: UnavailableSources, former: Task | None = None) -> None:
        self._task = task
        self._away = away
        self._read_here = set(map(_reader, source_setups(former))) if former else set()
        self._passed: set[str] = set()

    async def make(self, blocked: Set[str]) -> None:
        """Check everything not checked yet, except ``blocked`` and unavailable sources.

        A task with a checkpoint has run before: it continues without an unavailable source, and
        waits for its target and for a Spark master. If a new task can't reach a source, the task
        file is probably wrong, so the check fails. The task always waits for the target, which has
        the checkpoint.

        Raises PrecheckError if a check fails, or FatalError for a source that was followed before;
        DatabaseUnavailableError or TransientError to retry later.
        """
        every = {instance.source_id for instance in self._task.mysql_instances}
        if self._passed and every <= self._passed | blocked | self._away.reasons.keys():
            return
        admitted = await lets_in(address_of(self._task.target_database))
        found = await task_to_check(self._task)
        self._passed |= every - {source.source_id for source in found.sources}  # Retired ones.
        sources = [s for s in found.sources if s.source_id not in self._passed | blocked]
        if found.resuming:
            let_in = await self._away.look(s.source_id for s in sources)
            sources = [s for s in sources if s.source_id not in self._away.reasons]
            if not sources and not self._passed:
                raise self._away.waited_for()
            admitted = admitted and let_in == {s.source_id for s in sources}
        await self._check(replace(found, sources=tuple(map(self._as_followed, sources))), admitted)
        self._passed |= {source.source_id for source in sources}

    def _as_followed(self, source: SourceToCheck) -> SourceToCheck:
        """Return a followed source without its binlog position, which its reader checks."""
        start = None if source.followed else source.start
        return replace(source, start=start, read_here=_reader(source) in self._read_here)

    async def _check(self, found: TaskToCheck, admitted: bool) -> None:
        results = await run_checks(found, frozenset(self._task.ignore_checking_items))
        failed = [result for result in results if result.state == "failed"]
        lost = [result.finding for result in failed if result.name in _PASSING]
        if lost and admitted and found.resuming:
            raise DatabaseUnavailableError("; ".join(lost))
        for result in failed:
            if found.resuming and result.name == SPARK_MASTER:
                raise TransientError(result.finding)
        followed = {source.source_id for source in found.sources if source.followed}
        if any(result.where not in followed for result in failed):
            raise PrecheckError(results)
        for result in failed:
            raise _unfit(result.where, [r for r in failed if r.where == result.where])
        _log_warnings(results)


def _reader(source: SourceSetup | SourceToCheck) -> tuple[str, int, int]:
    """Return what identifies a reader of a source."""
    reads_as = source.replica.server_id if isinstance(source, SourceSetup) else source.server_id
    return source.address.host, source.address.port, reads_as


def _unfit(source: str, failed: Sequence[CheckResult]) -> FatalError:
    return fault(
        "source.check-failed",
        source=source,
        findings="; ".join(f"{result.finding} ({result.name})" for result in failed),
        remedies=tuple(dict.fromkeys(way for result in failed for way in result.remedies)),
    )


def _log_warnings(results: Iterable[CheckResult]) -> None:
    for result in results:
        if result.state == "warning":
            log.warning(
                "check.warning",
                check=result.name,
                where=result.where,
                finding=result.finding,
                remedies=result.remedies,
            )

"""The supervisor: the life of a task, from `replicator run` to its exit code."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import structlog

from actors.control.arguments import DEFAULTS, OnChangedRules, RunOptions, Until
from actors.control.metrics_server import MetricsServer
from actors.control.protocol import Reply, Request
from actors.control.server import ControlServer
from actors.counting.task_counts import TaskCounts
from actors.errors.faults import FatalError, LostCommitsError, Recovery, TaskParts, TransientError
from actors.jobs.backoff import Backoff
from actors.setup.task_setup import address_of, source_setups
from actors.task.generation import Generation
from actors.task.heartbeat import Heartbeat
from actors.task.operator.blocked_parts import (
    Block,
    BlockedParts,
    block_of,
    pause_reason,
    recopy_wanted,
    sources_by_target,
)
from actors.task.operator.fault_answers import TAKEN, FaultAnswers
from actors.task.operator.switch_requests import SwitchRequests
from actors.task.outcome import (
    Failed,
    Outcome,
    Pause,
    Phase,
    Retry,
    Stop,
    log_state,
    report_lost,
    restart_fault,
    weightiest,
)
from actors.task.part_backoff import PartBackoff
from actors.task.recurrence import Recurrence, rows_copied, saved_positions
from actors.task.reload import Reload, ReloadRefusedError, changed_task, checked, sources_of
from actors.task.resources.cancellation import done_unless
from actors.task.resources.finished_task import admit
from actors.task.resources.lease_keeper import LeaseKeeper, lease_lost
from actors.task.resources.leftovers import cause_of, forget_saved, refuse_removed
from actors.task.resources.spark import TaskSpark
from actors.task.signals import obey_signals
from actors.task.stalled_target import StalledTarget, end_stalled
from actors.task.startup.prechecks import Prechecks
from actors.task.status_report import RateMeter, lag_of_all, stalled_status, task_status
from actors.task.target_watch import TargetWatch
from actors.task.task_end import EndOfTask
from actors.task.wiring.wiring import RunningTask
from config.models import Task
from config.processing import host_and_port
from replicator.downstream.meta.lease import Lease, LeaseLostError, LeaseState, this_process
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.schema.scratch.learned_structures import LearnedStructures
from replicator.status import TaskState, TaskStatus, now

RESTART_WAIT = (0.5, 30.0)
"""Seconds before the first restart after a transient failure, and the maximum before later ones."""

RELEASE_SECONDS = 5.0
"""Maximum seconds for returning the lease at the end of the process."""


class TaskSupervisor:
    """Starts generations of the task's actors, restarts and pauses them, and executes commands.

    A transient failure (an unavailable server, a failure of Spark) starts a new generation from the
    saved state, with growing pauses. A fault blocks its scope, and the rest continues in a new
    generation; or it pauses the task, or ends the process, depending on the ``options``.
    """

    def __init__(
        self,
        task: Task,
        spark: TaskSpark,
        options: RunOptions = DEFAULTS,
    ) -> None:
        self._task = task
        self._reload: Reload | None = None
        self._environment = options.environment
        self._on_changed_rules = options.on_changed_rules
        self._options = options
        self._phase = Phase("starting", now())
        self._wish = "run"
        self._wished = anyio.Event()
        self._parts = BlockedParts()
        self._sources = [instance.source_id for instance in task.mysql_instances]
        self._backoff = PartBackoff(self._parts, lambda: self._whole, self._is_altering)
        self._away = sources_of(task)
        self._prechecks = Prechecks(task, self._away)
        self._target_watch = TargetWatch(
            address_of(task.target_database),
            task.ignore_checking_items,
            self._followed_targets,
            lambda: self._generation.written_targets if self._generation else frozenset(),
        )
        self._stalled = StalledTarget(
            address_of(task.target_database),
            task.meta_schema,
            lambda: self._phase.state not in ("standby", "paused", "stopped"),
            lambda: self._targets,
        )
        self._whole: Block | None = None
        self._nothing_left = False
        self._known_targets: frozenset[TableName] = frozenset()
        self._recopy: set[TableName] = set()
        self._generation: Generation | None = None
        self._counts = TaskCounts()
        self._rates = RateMeter(self._counts)
        self._spark = spark
        self._learned = LearnedStructures()
        self._recurrence = Recurrence()
        self._lease = Lease(task.meta_schema, task.name, this_process())
        self._keeper = LeaseKeeper(
            address_of(task.target_database), task.meta_schema, task.name, self._lease
        )
        self._lease_lost = anyio.Event()
        self._prepared = False
        self._still = anyio.Lock()
        self._answers = FaultAnswers(
            task,
            self._lease,
            lambda: self._running,
            lambda: self._phase.state,
            lambda: list(self._blocks),
            self._still,
            self._counts,
        )
        self._switch = SwitchRequests(
            task, self._lease, self.status, self._start_again, self.request, self._still
        )
        self._log = structlog.get_logger().bind(task=task.name)

    def status(self) -> TaskStatus:
        """Return the present status of the task."""
        status = task_status(
            self._task.name,
            self._phase.state,
            self._phase.since,
            os.getpid(),
            self._phase.fault,
            self._parts,
            self._generation,
            self._rates,
        )
        status = stalled_status(status, self._stalled.trouble)
        return replace(status, standby_for=self._phase.standby_for, reason=self._reason)

    @property
    def stands_by_again(self) -> bool:
        """Whether the task has ended here because another process took it over, and may return.

        The state and counters of this object are useless then: a new object must replace it.
        """
        fault, goes_on = self._phase.fault, self._wish != "stop"
        lost = fault is not None and fault.event == "task.lease-lost"
        return self._options.standby and lost and goes_on

    def request(self, command: str) -> None:
        """Pause, resume or stop the whole task; return at once.

        Raises ValueError for other commands.
        """
        if command not in ("pause", "resume", "stop"):
            raise ValueError(f"no such command: {command}")
        wish = "run" if command == "resume" else command
        going = self._phase.state == "running" and not self._parts.blocked
        if self._wish == "stop" or (wish == "run" and going):
            return
        self._nothing_left = False
        if wish == "run":
            self._forget_fault()
            self._parts.release(self._parts.blocked)
        elif self._whole is not None:
            # A task that the operator pauses must not resume by itself.
            self._whole = replace(self._whole, retried=False)
        self._wish = wish
        self._start_again()

    def _leave(self) -> None:
        """Leave the state of a run that ends for a restart: it must not count as the new run's."""
        if self._wish == "run" and self._phase.state == "running":
            self._enter("starting")

    def request_parts(self, command: str, arguments: Mapping[str, Any]) -> None:
        """Pause or resume parts of the task, as `BlockedParts.steer` accepts them; return at once.

        Raises ValueError.
        """
        begun = self._generation is not None and self._generation.begun
        self._parts.steer(command, arguments, self._targets, self._sources, begun=begun)
        self._go_on_if_possible()
        if self._wish == "run" and not self._something_left:
            self._wish, self._nothing_left = "pause", True
        self._start_again()

    def request_recopy(self, arguments: Mapping[str, Any]) -> None:
        """Empty targets and copy them again; return at once. Raises ValueError."""
        known = sources_by_target(self._running, self._targets)
        targets = recopy_wanted(self.status(), self._task.task_mode, arguments, known)
        self._recopy |= targets
        self._go_on_with(TaskParts(targets))

    async def _reload_file(self, arguments: Mapping[str, Any]) -> Reply:
        """Try a changed task file; the answer says whether the task uses it."""
        state, former = self._phase.state, self._task
        try:
            if self._reload is not None:
                raise ReloadRefusedError("the task file is being read already")
            if state != "running" and not (state == "paused" and self._whole is not None):
                raise ReloadRefusedError(
                    f"the task is {state}: it reads its file when it runs",
                    (f"`replicator resume {former.name}`, if it is paused; then try it again",),
                )
            task = await changed_task(former, arguments, self._environment)
            away = sources_of(task)
            await checked(task, former, Prechecks(task, away, former), away)
        except ReloadRefusedError as error:
            return error.reply
        faulty = self._parts.faulty
        answer = OnChangedRules(arguments.get("on_changed_rules") or "stop")
        self._use(task)
        self._reload = tried = Reload(task, former, faulty, answer)
        self._on_changed_rules = answer
        self._forget_fault()
        self._wish, self._nothing_left = "run", False
        self._go_on_with(faulty)
        return await tried.settled()

    def _go_on_with(self, parts: TaskParts) -> None:
        self._parts.release(parts)
        self._go_on_if_possible()
        self._start_again()

    def _start_again(self) -> None:
        self._leave()
        self._wished.set()

    async def run(self) -> int:
        """Run until stopped; return the exit code: 0 when stopped properly, 1 after a fault.

        Raises actors.control.server.AlreadyRunningError or
        replicator.downstream.meta.lease.LeaseHeldError if another process runs the task,
        actors.control.metrics_server.MetricsAddressError, and
        actors.task.startup.prechecks.PrecheckError.
        """
        async with anyio.create_task_group() as tasks:
            await tasks.start(ControlServer(self._task.name, self._answer).run)
            if listen := self._task.metrics.listen:
                address, meters = host_and_port(listen), self._counts.meters
                await tasks.start(MetricsServer(address, self.status, meters).run)
            tasks.start_soon(obey_signals, self.request)
            tasks.start_soon(self._rates.sample_regularly, self._lag)
            tasks.start_soon(Heartbeat(self.status).keep)
            tasks.start_soon(self._stalled.check_regularly)
            if self._options.until is not None:
                tasks.start_soon(self._end_when_reached, self._options.until)
            tasks.start_soon(self._keep_lease)
            try:
                code = await self._live()
            finally:
                if self._reload is not None:
                    self._reload.refuse(ReloadRefusedError("the task has ended"))
                with anyio.CancelScope(shield=True):
                    await self._spark.close()
                    with anyio.move_on_after(RELEASE_SECONDS):
                        await self._keeper.release()
                tasks.cancel_scope.cancel()
        return code

    async def _live(self) -> int:
        backoff, code = Backoff(RESTART_WAIT), 0
        while await self._wanted():
            match self._tried(await self._run_once()):
                case Stop():
                    code = int(self._parts.failed)
                    break
                case Pause():
                    code = int(self._parts.failed)
                case Failed(error) if error.recovery is Recovery.RETRY:
                    self._fail(error)
                case Failed(error):
                    code = 1
                    self._fail(error)
                    if self._options.exit_on_error or error.recovery is Recovery.NONE:
                        break
                case Retry(error, ran) as retry:
                    if ran:
                        code = 0
                        backoff.reset()
                    self._report_restart(error, backoff.next)
                    if retry.spark_lost:
                        await self._spark.close()
                    await backoff.wait(self._wished)
        if not self.stands_by_again:
            self._enter("stopped")
        return code

    async def _wanted(self) -> bool:
        """Return whether the task should run; wait while it is paused."""
        while self._wish == "pause":
            self._wished = anyio.Event()
            self._enter("paused")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._take_up, self._next_attempt)
                await self._wished.wait()
                tasks.cancel_scope.cancel()
            # A state that is being saved for the next start must be complete.
            async with self._still:
                pass
        return self._wish == "run"

    async def _run_once(self) -> Outcome:
        """Run one generation, with its prerequisites."""
        self._wished = anyio.Event()
        self._enter("starting")
        started = anyio.Event()
        try:
            if self._keeper.lost is not None:
                raise self._keeper.lost
            if not await self._prepare():
                return Stop() if self._wish == "stop" else Pause()
            finished = await self._run_generation(started)
        except FatalError as error:
            return Failed(await cause_of(error, self._task) if self._prepared else error)
        except LeaseLostError as error:
            return Failed(lease_lost(error))
        except LostCommitsError as error:
            report_lost(error)
            return Retry(error, ran=started.is_set())
        except (TransientError, DatabaseUnavailableError) as error:
            saved, copied = saved_positions(self._generation), rows_copied(self._generation)
            fault = self._recurrence.fault(error, saved, copied)
            return Failed(fault) if fault else Retry(error, ran=started.is_set())
        return Stop() if finished or self._wish == "stop" else Pause()

    async def _prepare(self) -> bool:
        """Check everything, take the lease, and delete the former state if requested (once).

        Return False if the operator requests something else before.
        """
        if self._prepared:
            await refuse_removed(self._task)
            await self._prechecks.make(self._parts.blocked.sources)
            return True
        self._log.info("task.step", step="checks")
        admitted = partial(admit, self._task, reopens=self._options.reopen)
        for step in (admitted, partial(self._prechecks.make, self._parts.blocked.sources)):
            if not await done_unless(self._wished, step):
                return False
        self._log.info("task.step", step="lease")
        forgetting = self._task.remove_meta
        if self._options.standby:
            taken = await self._take_over()
        else:
            taken = await self._keeper.take(self._wished, forgetting=forgetting)
        if not taken:
            return False
        # Another process may have finished the task while this one waited.
        await admitted(self._lease)
        if forgetting:
            await forget_saved(self._task)
            self._log.info("meta.removed")
        self._prepared = True
        return True

    async def _take_over(self) -> bool:
        """Take the lease when it is free; return False if the operator requests something else."""
        # A failure of Spark's start must be known before Spark is needed.
        if not await self._spark.warm_up(self._wished):
            return False
        if not await self._keeper.stand_by(self._wished, self._stand_by):
            return False
        if former := self._phase.standby_for:
            self._log.info("task.takeover", former=former)
            self._enter("starting")
        return True

    def _stand_by(self, lease: LeaseState) -> None:
        if self._phase.standby_for != str(lease):
            holder = lease.holder
            self._log.info("task.standby", host=holder.host, process=holder.process)
            self._phase = replace(
                self._phase, state="standby", since=now(), fault=None, standby_for=str(lease)
            )

    def _tried(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a run.

        After a refused task file, that the former file is used again.
        """
        tried = self._reload
        if tried is None or not tried.refused(outcome):
            return outcome
        self._use(tried.former)
        return outcome if isinstance(outcome, Stop) else Pause()

    async def _accept_reload(self, accepted: anyio.Event) -> None:
        await accepted.wait()
        if self._reload is not None:
            self._reload.accept()
        self._reload, self._on_changed_rules = None, OnChangedRules.STOP

    def _use(self, task: Task) -> None:
        """Use another task file for the next generation."""
        self._reload = None
        former, self._task, self._away = self._task, task, sources_of(task)
        self._sources = [instance.source_id for instance in task.mysql_instances]
        self._prechecks = Prechecks(task, self._away, former)
        self._answers.task = self._switch.task = task
        address = address_of(task.target_database)
        self._target_watch.use(address, task.ignore_checking_items)
        self._stalled.use_address(address)
        self._keeper.use_address(address)

    async def _run_generation(self, started: anyio.Event) -> bool:
        """Run a generation; return whether all is done. Raises the most important error."""
        generation = self._generation = Generation(
            self._switch.next_task,
            self._spark.context_unless,
            self._counts,
            self._lease,
            self._parts.blocked,
            self._away,
            self._learned,
            self._on_changed_rules,
        )
        generation.recopy, generation.reason_of = self._recopy, self._parts.reason_of
        given_up = anyio.Event()
        if self._reload is not None:
            self._reload.begun = True
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._accept_reload, generation.accepted)
                tasks.start_soon(self._announce, started)
                for one in (self._away.one_is_back, self._next_attempt):
                    tasks.start_soon(self._take_up, one, started)
                tasks.start_soon(self._end_without_lease)
                scope = tasks.cancel_scope
                stops, close = lambda: self._wish == "stop", self._spark.close
                tasks.start_soon(end_stalled, self._stalled, stops, given_up, scope, close)
                tasks.start_soon(self._target_watch.run, started)
                await generation.run(self._wished, started)
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            if given_up.is_set():
                return False
            raise weightiest(group, address_of(self._task.target_database)) from group
        return generation.finished

    def _followed_targets(self) -> frozenset[TableName]:
        generation = self._generation
        return generation.targets - self._parts.blocked.targets if generation else frozenset()

    async def _announce(self, started: anyio.Event) -> None:
        await started.wait()
        self._forget_fault()
        self._enter("running")
        await self._wished.wait()
        states: dict[str, TaskState] = {"stop": "stopping", "pause": "pausing", "run": "starting"}
        if self._phase.state != states[self._wish]:
            self._enter(states[self._wish])

    async def _take_up(
        self, is_there: Callable[[], Awaitable[None]], started: anyio.Event | None = None
    ) -> None:
        """Start again when an omitted part can continue, once the task runs or is paused."""
        if started is not None:
            await started.wait()
        await is_there()
        self._go_on_with(TaskParts())

    async def _next_attempt(self) -> None:
        """Wait until a blocked part, or the paused task, is to be tried again; release it."""
        if await self._backoff.one_is_due() and self._wish == "pause":
            self._forget_fault()
            self._wish, self._nothing_left = "run", False

    def _go_on_if_possible(self) -> None:
        """End a pause whose only reason was that all parts were blocked."""
        if self._wish == "pause" and self._nothing_left and self._something_left:
            self._forget_fault()
            self._wish, self._nothing_left = "run", False

    async def _keep_lease(self) -> None:
        """Renew the lease. If it is lost, end the run or the pause, so that a run reports it."""
        await self._keeper.renew_until_lost()
        self._lease_lost.set()
        if self._wish == "pause":
            self._wish = "run"
            self._wished.set()

    async def _end_without_lease(self) -> None:
        await self._lease_lost.wait()
        assert self._keeper.lost is not None
        raise self._keeper.lost

    async def _end_when_reached(self, until: Until) -> None:
        end = EndOfTask(until, source_setups(self._task), self._counts)
        await end.reached(lambda: self._generation if self._phase.state == "running" else None)
        self.request("stop")

    async def _answer(self, request: Request) -> Reply:
        if request.command == "status":
            return Reply(ok=True, body=self.status().to_dict())
        if request.command == "switch":
            return await self._switch.take(request.arguments)
        if request.command in TAKEN:
            return await self._answers.take(request)
        if request.command == "reload":
            return await self._reload_file(request.arguments)
        if request.command == "recopy" and not request.arguments.get("truncate"):
            return await self._answers.recopy(request.arguments, self.status, self._go_on_with)
        try:
            if request.command == "recopy":
                self.request_recopy(request.arguments)
            elif request.arguments:
                self.request_parts(request.command, request.arguments)
            else:
                self.request(request.command)
        except ValueError as error:
            return Reply(ok=False, error=str(error))
        return Reply(ok=True)

    @property
    def _running(self) -> RunningTask | None:
        """The part that follows the sources, or did until the task paused."""
        return self._generation.running if self._generation else None

    def _is_altering(self) -> bool:
        return self._running is not None and bool(self._running.writer.ddl.under_way)

    def _lag(self) -> float | None:
        return lag_of_all(self._generation, self._counts)

    def _report_restart(self, error: Exception, wait: float) -> None:
        self._counts.meters.restart()
        self._log.warning("task.restart", reason=str(error), seconds=wait)
        self._phase = replace(self._phase, fault=restart_fault(self._phase.fault, error, wait))

    def _fail(self, error: FatalError) -> None:
        """Report a fault and block its scope.

        If this is the whole task, or no other part is left, the task pauses or ends.
        """
        block = block_of(self._task.name, self._task.file, error)
        fault = block.fault
        assert fault is not None
        self._counts.meters.fault(error.event)
        record = {"error": fault.message, "where": fault.where, "remedies": fault.remedies}
        passes = error.recovery is Recovery.RETRY
        if passes:
            self._log.warning(error.event, **record)
        else:
            self._log.error(error.event, **record)
        # A blocked part can't have a fault; if it has one, blocking it does not help.
        added = error.scope is not None and self._parts.add(error.scope, block)
        if block.retried:
            self._backoff.begin(error.scope if added else None)
        if added and self._something_left and (passes or not self._options.exit_on_error):
            return
        self._whole, self._nothing_left = block, added
        self._phase = replace(self._phase, fault=fault)
        if self._wish == "run":
            self._wish = "pause"

    def _forget_fault(self) -> None:
        self._whole = None
        self._phase = replace(self._phase, fault=None)

    @property
    def _blocks(self) -> Iterator[Block]:
        yield from self._parts.blocks
        if self._whole is not None:
            yield self._whole

    @property
    def _targets(self) -> frozenset[TableName]:
        """The known targets; at a start, the targets of the previous run."""
        found = self._generation.targets if self._generation else frozenset()
        self._known_targets = found or self._known_targets
        return self._known_targets

    @property
    def _something_left(self) -> bool:
        return self._parts.leaves(self._targets, self._sources)

    @property
    def _reason(self) -> str:
        """The reason why the task pauses; empty if it does not."""
        if self._phase.state not in ("pausing", "paused"):
            return ""
        left = self._nothing_left
        return pause_reason(
            self._parts, self._whole, self._targets, self._sources, nothing_left=left
        )

    def _enter(self, state: TaskState) -> None:
        self._phase = replace(self._phase, state=state, since=now(), standby_for="")
        log_state(state, self._reason)

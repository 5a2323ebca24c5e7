"""The requests of `replicator switch` to the running task.

While a switch prepares, the task validates every row that it applies, so that only these rows have
to be compared after the sources are read-only.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import structlog
from attrs import define, field
from pymysql.err import MySQLError

from actors.control.end_positions import has_passed
from actors.control.protocol import Reply
from actors.setup.task_setup import address_of
from config.models import Task
from config.processing import Validator
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, LeaseLostError
from replicator.downstream.meta.switch_records import SwitchRecord, SwitchStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.status import TaskStatus
from replicator.switch.certificate import CertificateError, SwitchCertificate

_VALIDATOR = "switch"
"""Name of the validator during a switch."""

_AT_ONCE = {
    "validate_interval": timedelta(0),
    "check_interval": timedelta(seconds=1),
    "row_error_delay": timedelta(seconds=3),
}
"""Settings by which rows are compared as soon as they are applied."""


@define(eq=False)
class SwitchRequests:
    """Accepts the requests of `replicator switch`.

    Attributes:
        task: the task in its file.
        status: returns the present status.
        start_again: starts a new run, which uses `next_task`.
        request: accepts `stop`, which ends the process properly.
        still: a lock that is held while something is saved.
    """

    task: Task
    _lease: Lease
    _status: Callable[[], TaskStatus]
    _start_again: Callable[[], None]
    _request: Callable[[str], None]
    _still: anyio.Lock
    _validates: bool = field(default=False, init=False)

    @property
    def next_task(self) -> Task:
        """The task for the next run."""
        return validating(self.task) if self._validates else self.task

    async def take(self, arguments: Mapping[str, Any]) -> Reply:
        """Answer a request.

        Args:
            arguments: `action` and its values: `begin`; `freeze` with `frozen`, the variables that
                the command is about to set; `end`; `finish` with `certificate`.
        """
        action = arguments.get("action")
        state = self._status().state
        if action in ("begin", "finish") and state != "running":
            return Reply(ok=False, error=f"the task is {state}, and a switch needs it running")
        try:
            async with self._still:
                if action == "begin":
                    self._validate(validates=True)
                elif action == "freeze":
                    async with self._store() as store:
                        await store.save(SwitchRecord(frozen=dict(arguments["frozen"])))
                    reach(Failpoint.SWITCH_RECORDED)
                elif action == "end":
                    async with self._store() as store:
                        await store.forget()
                    self._validate(validates=False)
                elif action == "finish":
                    return await self._finish(str(arguments.get("certificate")))
                else:
                    return Reply(ok=False, error=f"a switch has no action {action!r}")
        except (FencedError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"the target can't be read or written to: {error}")
        return Reply(ok=True)

    def _validate(self, *, validates: bool) -> None:
        if self._validates is not validates:
            self._validates = validates
            self._start_again()

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[SwitchStore]:
        task = self.task
        with closing(Connection(address_of(task.target_database))) as connection:
            meta = MetaStore(connection, task.meta_schema, task.name, self._lease)
            yield SwitchStore(meta)

    async def _finish(self, text: str) -> Reply:
        """Save the finished mark and the certificate, and end the task."""
        try:
            certificate = SwitchCertificate.from_json(text)
        except CertificateError as error:
            return Reply(ok=False, error=str(error))
        if why := unapplied(certificate, self._status()):
            return Reply(ok=False, error=why)
        async with self._store() as store:
            record = await store.load()
            finished = replace(record, finished_at=int(time.time()), certificate=text)
            await store.save(finished)
        reach(Failpoint.SWITCH_FINISHED)
        sources = {s.source: f"{s.file}:{s.offset}" for s in certificate.sources}
        structlog.get_logger().info("task.finished", sources=sources)
        self._request("stop")
        return Reply(ok=True)


def unapplied(certificate: SwitchCertificate, status: TaskStatus) -> str:
    """Return why the task has not applied everything up to a certificate's ends, if so."""
    known = {source.source: source for source in status.sources}
    if {source.source for source in certificate.sources} != set(known):
        return "the certificate has other sources than the task"
    for source in certificate.sources:
        at = known[source.source].complete_position
        end = BinlogPosition(source.file, source.offset)
        if not at or not has_passed(end, BinlogPosition.parse(at), ""):
            return f"{source.source} is applied up to {at or 'nothing yet'}, not yet to {end}"
    return ""


def validating(task: Task) -> Task:
    """Return the task with validation of all rows that it applies, without delay."""
    validator = Validator(mode="full").model_copy(update=_AT_ONCE)
    instances = tuple(
        instance.model_copy(update={"validator_config_name": _VALIDATOR})
        for instance in task.mysql_instances
    )
    validators = {**task.validators, _VALIDATOR: validator}
    return task.model_copy(update={"validators": validators, "mysql_instances": instances})

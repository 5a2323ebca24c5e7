"""The state of a cluster for a running application: its executors, and its standalone master."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

STANDALONE = "spark://"
"""The beginning of the address of a standalone master."""

ANSWER_SECONDS = 5
"""Seconds that a master may take to answer."""

_MASTER = "Master"
"""The name of a master's endpoint (Spark's ``Master.ENDPOINT_NAME``)."""

_QUESTION = "DeployMessages$RequestMasterState$"
_ANSWER = "org.apache.spark.deploy.DeployMessages$MasterStateResponse"
_ALIVE = "ALIVE"
_DRIVER = "driver"


class MasterAnswer(Enum):
    """The answer of a standalone master about the application."""

    KNOWS = auto()
    """The master knows the application. Managers of other kinds of clusters always do."""
    UNKNOWN = auto()
    """The master does not know the application, and gives it no executors any more."""
    SILENT = auto()
    """No master answers, or none is ready: it is down, or is reading its saved state."""


@dataclass(frozen=True, slots=True)
class LostExecutor:
    """An executor that the application has lost.

    Attributes:
        executor: its number in the application.
        host: its address.
        reason: Spark's reason for removing it.
    """

    executor: str
    host: str
    reason: str


def executor_count(context: SparkContext) -> int:
    """Return the number of executors, without the driver. Raises Py4JError without a JVM."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1


def lost_executors(context: SparkContext) -> Iterator[LostExecutor]:
    """Yield the executors that were lost since the start. Raises Py4JError without a JVM.

    Spark remembers the last hundred of them (``spark.ui.retainedDeadExecutors``).
    """
    executors = context._jsc.sc().statusStore().executorList(False)
    for number in range(executors.size()):
        executor = executors.apply(number)
        if not executor.isActive() and executor.id() != _DRIVER:
            why = executor.removeReason()
            reason = str(why.get()) if why.isDefined() else ""
            yield LostExecutor(executor.id(), executor.hostPort(), reason)


def ask_master(context: SparkContext) -> MasterAnswer:
    """Ask the standalone masters whether they know the application.

    A master without a recovery mode forgets its applications when it is restarted. It also ends an
    application whose connection breaks, and does not notify the driver. Neither the driver nor the
    workers register the application again (Spark's ``StandaloneAppClient``, ``Master``).

    Blocks for at most ANSWER_SECONDS per master that accepts connections. Raises Py4JError without
    a JVM.
    """
    master = context.master or ""
    if not master.startswith(STANDALONE):
        return MasterAnswer.KNOWS
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    answer = MasterAnswer.SILENT
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            state = _state_of(context, rpc, host, int(port))
        except Py4JJavaError:
            continue
        if state.status().toString() != _ALIVE:
            continue
        if any(known.id() == context.applicationId for known in state.activeApps()):
            return MasterAnswer.KNOWS
        answer = MasterAnswer.UNKNOWN
    return answer


def _state_of(context: SparkContext, rpc: Any, host: str, port: int) -> Any:
    # The web page of a master uses the same request. It changes nothing.
    jvm: Any = context._jvm
    assert jvm is not None
    endpoint = rpc.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host, port), _MASTER)
    question = getattr(getattr(jvm.org.apache.spark.deploy, _QUESTION), "MODULE$")
    seconds = jvm.java.util.concurrent.TimeUnit.SECONDS
    duration = jvm.scala.concurrent.duration.FiniteDuration(ANSWER_SECONDS, seconds)
    timeout = jvm.org.apache.spark.rpc.RpcTimeout(duration, "a master's answer")
    answer = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName(_ANSWER))
    return endpoint.askSync(question, timeout, answer)

"""A private Spark cluster: a standalone master and workers that share nothing with the tests.

Master and workers are started from what the PySpark package ships, on free ports of the loopback
interface, with an empty environment; executors get a Python that has none of our packages, and
their folders are elsewhere. Only who knows the cluster's secret can submit to it: whoever submits
runs programs as this user. All of it ends with this process, however that ends.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pyspark

from replicator.pipeline.spark.java import find_java_home
from replicator.sandbox.keeper import Keeper, ServerStartError
from replicator.sandbox.server import reserved_port, tail
from tests.support.spark.executor_python import executor_python

HOST = "127.0.0.1"
START_SECONDS = 60.0
LOOK_SECONDS = 0.05

_SPARK_HOME = Path(pyspark.__file__).parent
_CLASSES = "org.apache.spark.deploy"
_REGISTERED = "Successfully registered with master"


class SparkCluster:
    """A standalone master and its workers, of one core each; a context manager.

    ``recovery``: Spark's ``spark.deploy.recoveryMode``. A master of the mode NONE knows nothing
    after a restart, one of the mode FILESYSTEM knows its applications and workers.
    """

    def __init__(self, workers: int = 2, recovery: str = "NONE") -> None:
        self._resources = ExitStack()
        self._count = workers
        self._recovery = recovery
        self._workers: list[Keeper] = []
        self._secret = secrets.token_hex(16)
        self.master = ""

    def __enter__(self) -> Self:
        with ExitStack() as resources:
            reservation = resources.enter_context(reserved_port(HOST))
            self._port = reservation.getsockname()[1]
            self.master = f"spark://{HOST}:{self._port}"
            self._master = resources.enter_context(Keeper())
            self.folder = self._master.folder
            self._run_master()
            self.python = executor_python(self.folder / "python")
            self._workers = [resources.enter_context(Keeper()) for _ in range(self._count)]
            for worker in self._workers:
                self._run_worker(worker)
            for worker in self._workers:
                self._await_registered(worker, 1)
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def settings(self, conf: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The section ``spark`` of a task that runs here; ``conf`` goes over its settings."""
        own = {
            **self._security(),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.pyspark.python": str(self.python),
        }
        return {"master": self.master, "conf": {**own, **(conf or {})}}

    def kill_master(self) -> None:
        """SIGKILL the master; workers and executors go on."""
        self._master.kill()

    def start_master(self) -> None:
        """Start a killed master again, at the same address; it waits for nobody."""
        self._run_master()

    def kill_worker(self, number: int) -> None:
        """SIGKILL a worker and its executors."""
        self._workers[number].kill()

    def start_worker(self, number: int) -> None:
        """Start a killed worker again, and wait until it has registered."""
        before = self._registrations(self._workers[number])
        self._run_worker(self._workers[number])
        self._await_registered(self._workers[number], before + 1)

    def _run_master(self) -> None:
        self._run(self._master, "master.Master", "--port", str(self._port))

    def _run_worker(self, keeper: Keeper) -> None:
        work = str(keeper.folder / "work")
        resources = ("--cores", "1", "--memory", "1g", "--work-dir", work)
        self._run(keeper, "worker.Worker", "--port", "0", *resources, self.master)

    def _run(self, keeper: Keeper, role: str, *arguments: str) -> None:
        java = find_java_home()
        env = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "JAVA_HOME": java,
            "SPARK_HOME": str(_SPARK_HOME),
            # What the start scripts of Spark find out; the worker looks for it.
            "SPARK_SCALA_VERSION": _scala_version(),
            # Where the pages of master and worker are bound to; they can't be turned off.
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(keeper.folder),
        }
        # Not as arguments, which every user of the machine can read; the folder is private.
        properties = keeper.folder / "spark.properties"
        settings = {
            **self._security(),
            "spark.master.rest.enabled": "false",
            "spark.ui.killEnabled": "false",
            "spark.deploy.recoveryMode": self._recovery,
            "spark.deploy.recoveryDirectory": str(self.folder / "recovery"),
        }
        properties.write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
        keeper.start(
            [
                str(Path(java, "bin", "java")),
                "-XX:TieredStopAtLevel=1",
                "-Xmx256m",
                *("-cp", str(_SPARK_HOME / "jars" / "*")),
                *(f"{_CLASSES}.{role}", "--host", HOST, "--webui-port", "0"),
                *("--properties-file", str(properties)),
                *arguments,
            ],
            env,
            _log(keeper),
        )

    def _security(self) -> dict[str, str]:
        return {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self._secret,
            "spark.network.crypto.enabled": "true",
        }

    def _await_registered(self, keeper: Keeper, count: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._registrations(keeper) < count:
            if not keeper.running() or time.monotonic() > deadline:
                raise ServerStartError(
                    f"A Spark worker did not register with {self.master}. The ends of the logs:\n"
                    f"{tail(_log(keeper))}\n{tail(self.folder / 'spark.log')}"
                )
            time.sleep(LOOK_SECONDS)

    def _registrations(self, keeper: Keeper) -> int:
        log = _log(keeper)
        return log.read_text().count(_REGISTERED) if log.exists() else 0


def _log(keeper: Keeper) -> Path:
    return keeper.folder / "spark.log"


def _scala_version() -> str:
    [core] = _SPARK_HOME.glob("jars/spark-core_*.jar")
    return core.name.removeprefix("spark-core_").partition("-")[0]

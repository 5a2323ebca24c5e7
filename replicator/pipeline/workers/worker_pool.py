"""A Spark job with long-lived tasks, one per core of Spark, that process one request after another.

A Spark job for each request would cost a tenth of a second, and move its data through two JVMs.
Here Spark starts the tasks, watches them, and restarts lost ones, but their data is sent directly
between this process and theirs (`replicator.pipeline.workers.worker`).

A worker pool holds the slots of all cores, so other jobs end it first (`release_slots`); the next
call of `worker_pool` begins it again. On this host, a pool without requests for IDLE_SECONDS ends
as well: Spark then ends its Python processes, which keep the memory of their busiest time. While
long jobs run beside it, it has fewer slots (`reserve_slots`, `share_slots`). When a task is lost
that has a request, the whole job ends, and the callers must repeat their requests.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import selectors
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PythonException

from replicator.mysql.connection.tls import load_pair
from replicator.pipeline.spark.cluster import is_local
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.spark.spark_folder import newest_folder
from replicator.pipeline.spark.unix_socket import check_peer, listen_privately
from replicator.pipeline.workers.frames import (
    ConnectionClosedError,
    Frame,
    FrameError,
    WorkFailedError,
    receive_answer,
    receive_exactly,
    send,
)
from replicator.pipeline.workers.worker import (
    ACCEPTED,
    SLOT,
    ClusterAddress,
    DriverAddress,
    LocalAddress,
    Work,
    serve,
    set_options,
)
from replicator.pipeline.workers.worker_listener import BACKLOG, AuthenticationError, WorkerListener

SECRET_SIZE = 32

_VALID = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The clocks of executors may be wrong, and the certificate is used only as long as its job."""

Entered = Callable[[int, socket.socket], None]
"""Called in a thread with a task's slot and its connection, after the task was authenticated."""


class DriverEndpoint:
    """The endpoint to which tasks connect, by its ``point``, until it is closed.

    On the driver's own host, it is a Unix socket which no other user can reach. On a cluster, it is
    a TCP port, encrypted whatever Spark's own settings are, since rows and the target's password
    are sent over it: the driver authenticates itself by its certificate, made for the job, and a
    task by the job's secret.
    """

    def __init__(self, point: DriverAddress, listener: WorkerListener) -> None:
        self.point = point
        self._listener = listener

    def close(self) -> None:
        """Stop accepting tasks."""
        self._listener.close()
        if isinstance(self.point, LocalAddress):
            Path(self.point.folder, self.point.name).unlink(missing_ok=True)


def local_endpoint(folder: str, entered: Entered) -> DriverEndpoint:
    """Return an endpoint for tasks on this host, in a private folder. Raises OSError."""
    name = f"pool-{secrets.token_hex(8)}"
    listening = listen_privately(folder, name, BACKLOG)
    return DriverEndpoint(
        LocalAddress(folder, name), WorkerListener(listening, _accept_local, entered)
    )


def cluster_endpoint(host: str, bind: str, port: int, entered: Entered) -> DriverEndpoint:
    """Return an endpoint for tasks on other hosts. Raises OSError if it can't listen.

    Args:
        host: the driver's host name for tasks.
        bind: the address to listen at.
        port: the port to listen at; 0 for any free one.
    """
    family = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0][0]
    certificate, context = _own_certificate()
    secret = secrets.token_bytes(SECRET_SIZE)
    listening = socket.create_server((bind, port), family=family, backlog=BACKLOG)
    point = ClusterAddress(host, listening.getsockname()[1], secret, certificate)
    return DriverEndpoint(
        point, WorkerListener(listening, partial(_accept_remote, context, secret), entered)
    )


def _accept_local(connection: socket.socket) -> tuple[int, socket.socket]:
    check_peer(connection)
    (slot,) = SLOT.unpack(receive_exactly(connection, SLOT.size))
    return slot, connection


def _accept_remote(
    context: ssl.SSLContext, secret: bytes, connection: socket.socket
) -> tuple[int, socket.socket]:
    set_options(connection)
    encrypted = context.wrap_socket(connection, server_side=True)
    try:
        # The greeting has the same size for every client.
        greeting = bytes(receive_exactly(encrypted, SLOT.size + SECRET_SIZE))
        if not hmac.compare_digest(greeting[SLOT.size :], secret):
            raise AuthenticationError(
                "a client that does not know the secret of the job has connected"
            )
        send(encrypted, (ACCEPTED,))
        (slot,) = SLOT.unpack_from(greeting)
        return slot, encrypted
    except BaseException:
        encrypted.close()
        raise


def _own_certificate() -> tuple[str, ssl.SSLContext]:
    """Return a new certificate, and the context that authenticates its owner."""
    # Imported here, since executors import modules that import this one, and may lack the package.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "replicator")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_VALID[0])
        .not_valid_after(_VALID[1])
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, (private + shown).decode())
    return shown.decode(), context


PORT_SETTING = "spark.replicator.port"
"""The setting of Spark for the port at which the driver waits for tasks; 0 for any free one."""

LIVING = "tasks that apply batches"
"""Spark's description of the pool's job."""

GATHER_SECONDS = 5.0
"""Maximum seconds to wait for all tasks of a new job, if some of them are connected."""

IDLE_SECONDS = 60.0
"""Seconds without requests after which a pool of this host ends. The next request then takes up to
a second more."""

END_SECONDS = 1.0
"""Maximum seconds until dismissed tasks have ended; then Spark ends them."""

_LOOPBACK = "127.0.0.1"


_SPARK_FAILED = (PySparkException, Py4JJavaError)
"""Spark's errors for a job that has failed; any other error means that the JVM is gone."""


class WorkerPoolError(PySparkException):
    """The job ended, or could not begin, before its tasks had answered."""


class WorkerPool:
    """One job with long-lived tasks, which leaves ``lent`` slots to other jobs.

    Raises WorkerPoolError if the driver can't listen for its tasks, Py4JError without a JVM.
    """

    def __init__(self, spark: SparkContext, work: Work, lent: int = 0) -> None:
        self.lent = lent
        self._context = spark
        self._local = is_local(self._context.master or "")
        self._offered = self._context.defaultParallelism
        self._slots = max(1, self._offered - lent)
        self._name = f"living-{uuid.uuid4().hex}"
        self._one_at_a_time = threading.Lock()
        self._changed = threading.Condition()
        self._tasks: dict[int, socket.socket] = {}
        self._former: list[socket.socket] = []
        self._over = False
        self._error: Exception | None = None
        self._endpoint = self._opened()
        self._ending, self._ended = socket.socketpair()
        self._complete_by = time.monotonic() + GATHER_SECONDS
        run = partial(self._run, work)
        self._spark = threading.Thread(target=run, daemon=True, name=self._name)
        self._spark.start()
        self._wanted = time.monotonic()
        if self._local:
            threading.Thread(target=self._end_idle, daemon=True, name=f"{self._name}-idle").start()

    def serves(self) -> bool:
        """Return whether the pool is running, with tasks for all slots that Spark offers now.

        On this host, it then runs for at least IDLE_SECONDS more.
        """
        self._wanted = time.monotonic()
        return not self._over and (self._local or self._context.defaultParallelism <= self._offered)

    def await_tasks(self) -> None:
        """Wait until the tasks have connected. Raises the errors of `ask`."""
        with self._one_at_a_time, self._telling():
            self._present(self._slots)

    def ask(
        self,
        requests: Callable[[int], Sequence[Frame | None]],
        most: int,
        *,
        sent: Callable[[], None],
    ) -> list[bytes]:
        """Return the answers of tasks to requests, in any order.

        Blocks until all tasks have answered. Without a task, waits until one connects or Spark ends
        the job. Raises PythonException if the work failed, WorkerPoolError if a task was lost,
        Spark's error if the job failed, and Py4JError, OSError or EOFError without a JVM.

        Args:
            requests: returns a request, or None, for each task; called with the number of tasks, at
                most ``most``.
            sent: called when all tasks have their requests.
        """
        with self._one_at_a_time, self._telling():
            tasks = self._present(min(most, self._slots))[:most]
            asked = []
            for task, request in zip(tasks, requests(len(tasks)), strict=True):
                if request is not None:
                    send(task, request)
                    asked.append(task)
            sent()
            return self._answers(asked)

    def end(self) -> None:
        """Dismiss the tasks after they have answered, and wait until they have ended."""
        with self._one_at_a_time:
            self._end(cancel=False)

    def _end_idle(self) -> None:
        """End the pool after a long time without a request; runs in a thread."""
        while True:
            with self._changed:
                left = self._wanted + IDLE_SECONDS - time.monotonic()
                if self._changed.wait_for(lambda: self._over, max(0.0, left)):
                    return
            with _beginning:
                if not self._one_at_a_time.acquire(blocking=False):
                    self._wanted = time.monotonic()
                elif self._wanted + IDLE_SECONDS <= time.monotonic():
                    # If the JVM is gone, the next request reports it.
                    with contextlib.suppress(Py4JError, OSError):
                        self._end(cancel=False)
                    self._one_at_a_time.release()
                    return
                else:
                    self._one_at_a_time.release()

    def _opened(self) -> DriverEndpoint:
        if self._local:
            folder = newest_folder()
            try:
                return local_endpoint(folder, self._enter)
            except OSError as error:
                raise WorkerPoolError(f"tasks can't be waited for in {folder}: {error}") from error
        conf = self._context._jsc.sc().conf()
        host = conf.get("spark.driver.host", _LOOPBACK)
        bind = conf.get("spark.driver.bindAddress", host)
        port = int(conf.get(PORT_SETTING, "0"))
        try:
            return cluster_endpoint(host, bind, port, self._enter)
        except OSError as error:
            raise WorkerPoolError(
                f"executors can't be waited for at {bind}, port {port or 'any'}: {error}"
                f" (spark.driver.bindAddress, {PORT_SETTING})"
            ) from error

    def _run(self, work: Work) -> None:
        """Let Spark run the tasks; runs in a thread, whose jobs are the group of this name."""
        try:
            self._context.setJobGroup(self._name, LIVING)
            run_in_tasks(self._context, self._slots, partial(serve, work), self._endpoint.point)
        except (PySparkException, Py4JError, OSError, EOFError) as error:
            self._error = error
        finally:
            self._endpoint.close()
            with self._changed:
                self._over = True
                self._changed.notify_all()
            self._ending.close()

    def _enter(self, slot: int, task: socket.socket) -> None:
        with self._changed:
            if self._over:
                # The task is too late: like the others, it is dismissed, and ends without an error.
                task.close()
                return
            former = self._tasks.get(slot)
            self._tasks[slot] = task
            if former is not None:
                # Spark has given the former task up, and restarts it. Another thread may be waiting
                # for it now.
                self._former.append(former)
                with contextlib.suppress(OSError):
                    former.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()

    def _present(self, wanted: int) -> list[socket.socket]:
        """Return the connected tasks, by slot: ``wanted`` or, after a while, fewer."""
        with self._changed:
            while True:
                for slot, task in list(self._tasks.items()):
                    if _is_gone(task):
                        self._tasks.pop(slot).close()
                if self._over:
                    raise ConnectionClosedError("the Spark job has ended")
                left = self._complete_by - time.monotonic()
                if len(self._tasks) >= wanted or (self._tasks and left <= 0):
                    return [self._tasks[slot] for slot in sorted(self._tasks)]
                self._changed.wait(left if self._tasks else None)

    def _answers(self, asked: Sequence[socket.socket]) -> list[bytes]:
        answers: list[bytes] = []
        failed: WorkFailedError | None = None
        with selectors.DefaultSelector() as waiting:
            for task in (*asked, self._ended):
                waiting.register(task, selectors.EVENT_READ)
            waited_for = len(asked)
            while waited_for:
                for key, _ in waiting.select():
                    if key.fileobj is self._ended:
                        raise ConnectionClosedError("the Spark job has ended")
                    assert isinstance(key.fileobj, socket.socket)
                    try:
                        answers.append(receive_answer(key.fileobj))
                    except WorkFailedError as error:
                        failed = failed or error
                    waiting.unregister(key.fileobj)
                    waited_for -= 1
        if failed is not None:
            raise PythonException(str(failed))
        return answers

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """End the job if it can't continue, and raise the cause.

        An error of Spark or the JVM is closer to the cause than a broken connection.
        """
        try:
            yield
        except FrameError as error:
            self._end(cancel=True)
            raise WorkerPoolError(f"what goes to or from tasks is no good: {error}") from error
        except ConnectionClosedError as error:
            by_itself = self._over
            self._end(cancel=True)
            own = self._error
            if own is not None and (by_itself or not isinstance(own, _SPARK_FAILED)):
                raise own from error
            raise WorkerPoolError(
                f"a task of the Spark job was lost, with its executor or its Python: {error}"
            ) from error
        except BaseException:
            self._end(cancel=True)
            raise

    def _end(self, *, cancel: bool) -> None:
        with self._changed:
            self._over = True
            for connection in (*self._tasks.values(), *self._former, self._ended):
                connection.close()
            self._tasks.clear()
        if not cancel:
            self._spark.join(END_SECONDS)
        if self._spark.is_alive():
            # Raises Py4JError if the JVM is gone, which the waiting callers must see.
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._name)
            self._spark.join()


def _is_gone(task: socket.socket) -> bool:
    """Whether an idle task has closed its connection: there is nothing else to read."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(task, selectors.EVENT_READ)
        return bool(waiting.select(0))


_living: WeakKeyDictionary[SparkContext, WorkerPool] = WeakKeyDictionary()
_lent: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
_beginning = threading.Lock()


def worker_pool(spark: SparkContext, work: Work) -> WorkerPool:
    """Return the worker pool of a Spark application; begin one if none is running.

    Raises WorkerPoolError, Py4JError without a JVM.
    """
    with _beginning:
        job, lent = _living.get(spark), _lent.get(spark, 0)
        if job is None or job.lent != lent or not job.serves():
            _end_pools(spark)
            job = _living[spark] = WorkerPool(spark, work, lent)
        return job


def release_slots(spark: SparkContext) -> None:
    """End the worker pool, if there is one, since another job needs its slots.

    Waits for the running requests of its tasks. Raises Py4JError without a JVM.
    """
    with _beginning:
        _end_pools(spark)


def free_slots(spark: SparkContext) -> int:
    """Return how many slots the worker pool can leave to others: half of them, or 0 of one.

    Raises Py4JError without a JVM.
    """
    return int(spark.defaultParallelism) // 2


def reserve_slots(spark: SparkContext, slots: int) -> None:
    """Let worker pools that begin from now on leave this many slots to others."""
    _lent[spark] = slots


def share_slots(spark: SparkContext) -> None:
    """End the worker pool as `release_slots` does, unless it leaves the reserved slots free."""
    with _beginning:
        job = _living.get(spark)
        if job is None or not job.lent or job.lent != _lent.get(spark, 0):
            _end_pools(spark)


def make_room(spark: SparkContext) -> None:
    """On a cluster, do the same as `share_slots`; a local Spark has enough slots."""
    if not is_local(spark.master or ""):
        share_slots(spark)


def _end_pools(spark: SparkContext) -> None:
    job = _living.pop(spark, None)
    if job is not None:
        job.end()

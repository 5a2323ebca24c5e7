"""A process forked from the task, which becomes Spark's daemon for Python workers.

Task and workers need many of the same modules. Loading them once, before the fork, saves 60 MiB of
memory and one second of CPU time at the start. Spark starts a Python process that is to be the
daemon. This process passes its streams and its environment to the fork, which acts as the daemon
instead. Without a fork (on a cluster, or after the first daemon has ended), the process itself
becomes the daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from replicator.pipeline.spark.unix_socket import check_peer, connect_privately, listen_privately

WORKER_FORK = "REPLICATOR_WORKER_FORK"
"""The environment variable with the folder of the fork's socket."""

_SOCKET = "worker-fork"
_CONNECT_SECONDS = 10.0
_STREAMS = (0, 1, 2)
_TAKEN = b"\n"
_WAITING = b"python\0-m\0replicator.pipeline.spark.worker_fork"
_STARTED = b"python\0-m\0replicator.pipeline.worker_daemon"
"""The command that ps shows for the fork, instead of the task's own command."""
_ARGUMENTS_FIELD = 45
"""The index of ``arg_start`` and ``arg_end`` in /proc/[pid]/stat, counted from the field after the
program's name (proc(5))."""


def start_worker_fork(folder: str, load: Callable[[], None], manage: Callable[[], None]) -> None:
    """Fork a process that becomes the daemon when Spark starts it. It ends with this process.

    This process must have no Python thread yet. Raises OSError.

    Args:
        folder: a folder that only this user may enter.
        load: loads the modules that workers need and that are not loaded yet.
        manage: does the daemon's work.
    """
    listening = listen_privately(folder, _SOCKET, 1)
    # Nobody writes to the pipe: it ends when this process ends.
    alive, _kept_open = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    gc.freeze()
    process = os.fork()
    if process == 0:
        try:
            _await_start(listening, alive, load, manage)
        finally:
            # The fork must not run the exit handlers of the task.
            os._exit(1)
    os.close(alive)
    listening.close()
    # The system keeps an ended process until its parent has read its exit code.
    threading.Thread(target=os.waitpid, args=(process, 0), daemon=True).start()


def _await_start(
    listening: socket.socket, alive: int, load: Callable[[], None], manage: Callable[[], None]
) -> NoReturn:
    # Java ends when the last process that holds its stdin pipe closes it: this must be the task.
    _close_all_but(alive, listening.fileno())
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _name_process(_WAITING)
    load()
    poller = select.poll()
    for descriptor in (alive, listening.fileno()):
        poller.register(descriptor)
    if alive in dict(poller.poll()):
        os._exit(0)
    connection, _ = listening.accept()
    check_peer(connection)
    # Only Spark ends a daemon. If Spark starts another one later, that one is not this fork.
    os.close(alive)
    listening.close()
    _name_process(_STARTED)
    _take_over(connection)
    try:
        manage()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    os._exit(0)


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (*_STREAMS, *kept):
            # The descriptor of the listing itself is closed already.
            with contextlib.suppress(OSError):
                os.close(int(name))


def _take_over(connection: socket.socket) -> None:
    """Replace the process that Spark has started: use its streams and its environment."""
    _, streams, _, _ = socket.recv_fds(connection, len(_TAKEN), len(_STREAMS))
    with connection.makefile("rb") as told:
        environment, sys.path[:], sys.argv[:] = json.loads(told.readline())
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, own in zip(streams, _STREAMS, strict=True):
        os.dup2(descriptor, own)
        os.close(descriptor)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, closefd=False)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    connection.sendall(_TAKEN)


def join_worker_fork() -> None:
    """Let the fork be the daemon, and wait for its end; return if there is no fork."""
    folder = os.environ.get(WORKER_FORK, "")
    if not folder:
        return
    told = json.dumps([dict(os.environ), sys.path, sys.argv])
    try:
        connection = connect_privately(folder, _SOCKET, _CONNECT_SECONDS)
        # The fork may still be loading modules.
        connection.settimeout(None)
        socket.send_fds(connection, [_TAKEN], _STREAMS)
        connection.sendall(told.encode() + b"\n")
        if connection.recv(len(_TAKEN)) != _TAKEN:
            return
    except OSError:
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(connection.fileno(), 0)
    # Wait until the daemon closes its end; `cat` needs less memory than a waiting Python.
    with contextlib.suppress(OSError):
        os.execvp("cat", ["cat"])  # nosec B606  (a fixed name)
    connection.recv(1)
    sys.exit()


def _name_process(command: bytes) -> None:
    """Show a command as this process's command in /proc, if there is room for it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = map(int, fields[_ARGUMENTS_FIELD : _ARGUMENTS_FIELD + 2])
    size = end - begin
    ctypes.memmove(begin, command[: max(0, size - 1)].ljust(size, b"\0"), size)

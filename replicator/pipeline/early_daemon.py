"""The process that Spark forks its Python workers from, forked from the driver while Java starts.

It has what it needs in memory at once: the driver has loaded the same. It lives no longer than its
Java: until Spark asks for it, it waits for the end of a pipe that Java holds open as well; from
then on its standard input is Spark's (`replicator.pipeline.hand_over`). Where it is not there,
Spark gets the one that it starts itself.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from typing import NoReturn

from replicator.pipeline.hand_over import listen, take_over
from replicator.pipeline.shown_words import show_as
from replicator.pipeline.worker_daemon import load, manage


class EarlyDaemon:
    """What the driver needs for it, before Java is started: raises OSError.

    ``lifeline`` is the descriptor that Java is to inherit.
    """

    def __init__(self, folder: str) -> None:
        self._listening = listen(folder)
        self._waiting, self.lifeline = os.pipe()

    def begin(self) -> None:
        """Load what it needs, as this process needs it too, and fork it; Java has been started.

        Not where this process has other threads: what they hold, nobody would let go of there.
        """
        os.close(self.lifeline)
        load()
        if threading.active_count() == 1:
            daemon = os.fork()
            if daemon == 0:
                _live(self._listening, self._waiting)
            # It ends some time, and then is to be no zombie.
            threading.Thread(target=os.waitpid, args=(daemon, 0), daemon=True).start()
        os.close(self._waiting)
        self._listening.close()


def _live(listening: socket.socket, lifeline: int) -> NoReturn:
    """Be that process, from the fork on: not even the driver's end is done in it."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _let_go_of_files({listening.fileno(), lifeline})
        logging.getLogger().handlers.clear()
        show_as("python -m replicator.pipeline.worker_daemon, begun by the driver")
        if take_over(listening, lifeline):
            os.close(lifeline)
            manage()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        # Whoever waits for it finds it gone, and does without.
        os._exit(code)


def _let_go_of_files(kept: set[int]) -> None:
    """Have all other open files lead nowhere: their numbers stay taken, whoever may know them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number not in kept and number != nowhere:
            try:
                os.dup2(nowhere, number, inheritable=False)
            except OSError:
                continue  # The one that the folder was read by.

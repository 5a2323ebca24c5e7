"""Several workers at a time, and what becomes of one that dies or says nothing."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz.rounds import DIED, HANG, LONGEST, Outcome
from tests.fuzz.worker import place_of

ROOT = Path(__file__).parents[2]
_START_SECONDS = 120.0
_ROUND_SECONDS = 4 * LONGEST


class _Worker:
    """A process that does rounds until it is ended; another one follows where it dies."""

    def __init__(
        self, first: int, step: int, paths: Sequence[Path], outcomes: queue.Queue[Outcome]
    ) -> None:
        self._next, self._step, self._paths = first, step, paths
        self._outcomes = outcomes
        self._over = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._fault = ""
        self._silent_since = time.monotonic()
        self._patience = _START_SECONDS
        self._hung = False
        self._threads = [threading.Thread(target=work) for work in (self._run, self._watch)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End the process."""
        self._over.set()
        if self._process is not None:
            self._process.kill()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            argv = [sys.executable, "-m", "tests.fuzz.worker", str(self._next), str(self._step)]
            self._silent_since, self._patience = time.monotonic(), _START_SECONDS
            self._hung, self._fault = False, ""
            # Without the system's certificates, which nobody needs: they take half the time.
            env = {**os.environ, "SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
            with subprocess.Popen(
                [*argv, *map(str, self._paths)],
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                text=True,
            ) as process:
                self._process = process
                if self._over.is_set():
                    process.kill()
                assert process.stdout is not None
                for line in process.stdout:
                    self._silent_since = time.monotonic()
                    self._take(json.loads(line))
            if not self._over.is_set():
                self._died(process.returncode)

    def _take(self, line: dict[str, object]) -> None:
        if "round" in line:
            self._patience = _ROUND_SECONDS
            self._next, self._fault = int(str(line["round"])), str(line["fault"])
            return
        self._next += self._step
        self._outcomes.put(Outcome(**line))  # type: ignore[arg-type]

    def _died(self, code: int) -> None:
        which, seed = place_of(self._next, len(self._paths))
        what = HANG if self._hung else DIED
        name = self._paths[which].stem
        self._outcomes.put(Outcome(name, seed, self._fault, what, f"exit code {code}"))
        if not self._fault:
            # It did not even start: another one would not either.
            self._over.set()
        self._next += self._step

    def _watch(self) -> None:
        while not self._over.wait(1):
            if time.monotonic() - self._silent_since > self._patience and self._process:
                self._hung = True
                self._process.kill()


def outcomes(
    paths: Sequence[Path], first: int, seconds: float, processes: int = 2
) -> Iterator[Outcome]:
    """Rounds of all recordings in turn, with the seeds from ``first`` on, for so long."""
    found: queue.Queue[Outcome] = queue.Queue()
    begin = first * len(paths)
    workers = [_Worker(begin + i, processes, paths, found) for i in range(processes)]
    deadline = time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0:
            try:
                yield found.get(timeout=left)
            except queue.Empty:
                break
    finally:
        for worker in workers:
            worker.end()
    while not found.empty():
        yield found.get()

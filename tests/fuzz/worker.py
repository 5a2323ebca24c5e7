"""Rounds in a process of its own, which may use so much memory and no more.

``python -m tests.fuzz.worker FIRST STEP RECORDING…``: rounds FIRST, FIRST + STEP …, each of the
next recording. Writes the number of a round before it begins, and its outcome, as lines of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path

from tests.fuzz.recording import load
from tests.fuzz.rounds import Judge

ADDRESS_SPACE = 512 << 20
"""Bytes beyond what the process has when it is warm."""


def place_of(number: int, recordings: int) -> tuple[int, int]:
    """Which recording a round takes, and its seed."""
    return number % recordings, number // recordings


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _rounds(numbers: Iterator[int], paths: Sequence[Path]) -> None:
    judges = [Judge(load(path)) for path in paths]
    _limit_memory()
    for number in numbers:
        which, seed = place_of(number, len(judges))
        _tell({"round": number, "fault": str(judges[which].fault(seed))})
        _tell(asdict(judges[which].round(seed)))


def _tell(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    first, step, *rest = sys.argv[1:]
    _rounds(count(int(first), int(step)), [Path(one) for one in rest])

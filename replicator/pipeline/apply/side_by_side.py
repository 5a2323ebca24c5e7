"""Doing the same to several things, a few at a time: while one waits for a server, another goes on.

The threads stay, so what is kept for each of them (`replicator.downstream.rows.write_session`) is
there the next time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

ABREAST = 3
"""How many things are done at the same time, the caller's thread included."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_others = ThreadPoolExecutor(ABREAST - 1, "side-by-side")


def side_by_side(
    items: Sequence[Item], do: Callable[[Item], Result], *, last: Callable[[Result], bool]
) -> list[Result]:
    """What ``do`` gives for each of the items, in no order; a single one is done by the caller.

    After a result that is the ``last``, or an error, no other item is begun. All that were begun
    are done when this returns, or raises what ``do`` raises.
    """
    left = iter(items)
    results: list[Result] = []
    one_at_a_time = threading.Lock()
    over = threading.Event()

    def go_on() -> None:
        try:
            while not over.is_set():
                with one_at_a_time:
                    found = list(islice(left, 1))
                if not found:
                    return
                result = do(found[0])
                results.append(result)
                if last(result):
                    over.set()
        finally:
            # Nothing is left, or nothing is to be begun.
            over.set()

    others = [_others.submit(go_on) for _ in range(min(ABREAST, len(items)) - 1)]
    try:
        go_on()
    finally:
        wait(others)
    for other in others:
        other.result()
    return results

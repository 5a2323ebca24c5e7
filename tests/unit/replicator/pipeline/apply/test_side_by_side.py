"""Several things at a time: all are done, some at the same time, none behind an error."""

from __future__ import annotations

import threading

import pytest

from replicator.pipeline.apply.job import ABREAST, side_by_side

SECONDS = 30.0


def never(_: object) -> bool:
    return False


def test_things_are_done_at_the_same_time() -> None:
    # Each waits until as many are at it: one after the other would never end.
    together = threading.Barrier(ABREAST)

    def meet(number: int) -> int:
        together.wait(SECONDS)
        return number

    assert sorted(side_by_side(range(4 * ABREAST), meet, last=never)) == [*range(4 * ABREAST)]


@pytest.mark.parametrize("count", [0, 1, 2, ABREAST, 100])
def test_each_is_done_once(count: int) -> None:
    done = side_by_side(range(count), lambda number: number, last=never)
    assert sorted(done) == [*range(count)]


def test_a_single_one_is_done_by_the_caller() -> None:
    [name] = side_by_side([0], lambda _: threading.current_thread().name, last=never)
    assert name == threading.current_thread().name


def test_threads_stay() -> None:
    def threads() -> set[int]:
        together = threading.Barrier(ABREAST)

        def meet(_: int) -> int:
            together.wait(SECONDS)
            return threading.get_ident()

        return set(side_by_side(range(ABREAST), meet, last=never))

    assert len(threads()) == ABREAST
    assert threads() == threads()


def test_nothing_is_begun_behind_the_last() -> None:
    found = side_by_side(range(1_000_000), lambda number: number, last=lambda number: number >= 5)
    assert {*range(6)} <= {*found}
    assert len(found) < 6 + ABREAST


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_an_error_ends_all_and_what_has_begun_is_done(broken: int) -> None:
    begun = threading.Barrier(ABREAST)
    raised = threading.Event()
    done = []

    def work(number: int) -> None:
        begun.wait(SECONDS)
        if number == broken:
            raised.set()
            raise ValueError(number)
        raised.wait(SECONDS)
        done.append(number)

    with pytest.raises(ValueError, match=str(broken)):
        side_by_side(range(ABREAST), work, last=never)
    assert sorted([*done, broken]) == [*range(ABREAST)]

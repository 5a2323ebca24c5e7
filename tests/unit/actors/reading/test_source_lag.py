"""The lag that a reader tells."""

from __future__ import annotations

import time

from actors.reading.source_reader import ReaderProgress
from actors.task.source_report import whole_seconds


def test_unknown_before_the_first_event() -> None:
    assert ReaderProgress().lag() is None


def test_the_age_of_the_newest_event_while_there_is_more() -> None:
    progress = ReaderProgress(timestamp=int(time.time()) - 100, behind=True)
    lag = progress.lag()
    assert lag is not None
    assert 99 <= lag < 110


def test_none_once_all_is_read_however_old_the_last_event_is() -> None:
    assert ReaderProgress(timestamp=int(time.time()) - 100, behind=False).lag() == 0
    assert ReaderProgress(behind=False).lag() == 0


def test_a_clock_that_runs_ahead_is_no_negative_lag() -> None:
    assert ReaderProgress(timestamp=int(time.time()) + 100).lag() == 0


def test_a_source_that_is_not_read_falls_behind_from_then_on() -> None:
    idle = ReaderProgress(timestamp=int(time.time()) - 1000, behind=False)
    idle.leave("stopped")
    lag = idle.lag()
    assert lag is not None
    assert 0 <= lag < 10, "all was read a moment ago, though the last event is old"
    idle.all_read_at -= 100
    assert 100 <= (idle.lag() or 0) < 110
    idle.leave("reconnecting", "it is away")
    assert 100 <= (idle.lag() or 0) < 110, "it was not read in between"
    assert (idle.state, idle.error) == ("reconnecting", "it is away")


def test_one_that_was_never_read_to_the_end_has_the_age_of_its_newest_event() -> None:
    behind = ReaderProgress(timestamp=int(time.time()) - 100)
    behind.leave("stopped")
    assert 99 <= (behind.lag() or 0) < 110


def test_a_steady_lag_is_shown_as_a_steady_number() -> None:
    moments = (1_000 + tenth / 10 for tenth in range(50))
    shown = {whole_seconds(moment + 5 - int(moment)) for moment in moments}
    assert shown == {5.0}

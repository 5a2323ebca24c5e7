"""Which signals end a task in order."""

from __future__ import annotations

import signal

from actors.task.signals import ending_signals


def test_a_hangup_ends_a_task_unless_nohup_has_had_it_ignored() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert set(ending_signals()) == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert set(ending_signals()) == {signal.SIGTERM, signal.SIGINT}
    finally:
        signal.signal(signal.SIGHUP, before)

"""Tasks that come in, and whoever else connects: only who knows the secret, either way."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from replicator.pipeline import handshake
from replicator.pipeline.entrance import Entrance
from replicator.pipeline.frames import ClosedError, frame_of, receive, send
from replicator.pipeline.handshake import StrangerError, meet_driver, meet_task, new_secret
from replicator.pipeline.living_task import (
    DriverUnreachableError,
    Failed,
    MeetingPoint,
    answer_requests,
    connected,
)

SECONDS = 20.0
HOST = "127.0.0.1"


class Inside:
    """What an entrance has let in."""

    def __init__(self, *, encrypted: bool) -> None:
        self._tasks: queue.Queue[tuple[int, socket.socket]] = queue.Queue()
        self._met: list[socket.socket] = []
        self.entrance = Entrance(HOST, HOST, 0, encrypted=encrypted, entered=self._enter)
        self.point = self.entrance.point

    def _enter(self, slot: int, task: socket.socket) -> None:
        self._tasks.put((slot, task))

    def next(self) -> tuple[int, socket.socket]:
        slot, task = self._tasks.get(timeout=SECONDS)
        self._met.append(task)
        return slot, task

    def nobody(self) -> bool:
        return self._tasks.empty()

    def close(self) -> None:
        self.entrance.close()
        for task in self._met:
            task.close()


@contextmanager
def entrance(*, encrypted: bool = False) -> Iterator[Inside]:
    inside = Inside(encrypted=encrypted)
    try:
        yield inside
    finally:
        inside.close()


def double(value: Any) -> Any:
    if value < 0:
        raise ValueError(f"less than nothing: {value}")
    return 2 * value


@contextmanager
def task(point: MeetingPoint, slot: int) -> Iterator[list[BaseException]]:
    """A task that answers; what it ended with."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            with connected(point) as connection:
                meet_driver(connection, point.secret, slot)
                answer_requests(connection, double)
        except (ValueError, StrangerError, ClosedError) as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield ended
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_task_answers_until_it_is_let_go(encrypted: bool) -> None:
    with entrance(encrypted=encrypted) as inside, task(inside.point, 3) as ended:
        slot, connection = inside.next()
        assert slot == 3
        for number in (1, 21):
            send(connection, frame_of(number))
            assert receive(connection) == 2 * number
        connection.close()
    assert ended == []


def test_work_that_fails_is_told_with_its_trace_and_ends_the_task() -> None:
    with entrance() as inside, task(inside.point, 0) as ended:
        _, connection = inside.next()
        send(connection, frame_of(-1))
        answer = receive(connection)
        assert isinstance(answer, Failed)
        assert answer.trace.strip().endswith("ValueError: less than nothing: -1")
    assert [str(error) for error in ended] == ["less than nothing: -1"]


def test_a_task_that_loses_its_network_fails_and_one_that_is_let_go_does_not() -> None:
    here, there = socket.socketpair()
    with here, there:
        # As when the other machine no longer answers.
        there.settimeout(0.01)
        with pytest.raises(ClosedError, match="timed out"):
            answer_requests(there, double)
        here.close()
        answer_requests(there, double)


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_task_with_another_secret_is_turned_away(encrypted: bool) -> None:
    with entrance(encrypted=encrypted) as inside:
        with task(replace(inside.point, secret=new_secret()), 0) as ended:
            pass
        assert [type(error) for error in ended] == [ClosedError]
        with task(inside.point, 1):
            assert inside.next()[0] == 1, "and others still come in"
            inside.close()


def test_a_driver_with_another_secret_is_left() -> None:
    here, there = socket.socketpair()
    with here, there:
        told: list[bytes] = []

        def pretend() -> None:
            here.sendall(b"replicator living job 1\n" + bytes(32))
            told.append(here.recv(1000))
            here.sendall(bytes(32))

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(StrangerError, match="does not know the job's secret"):
            meet_driver(there, b"secret", 1)
        thread.join()
        assert b"secret" not in told[0]


def test_what_is_no_driver_is_left() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and whatever else it has to say")
        with pytest.raises(StrangerError, match="not the driver"):
            meet_driver(there, b"secret", 1)


def test_an_answer_serves_once_and_on_its_side_alone() -> None:
    secret = new_secret()
    here, there = socket.socketpair()
    with here, there:
        slots: list[int] = []
        thread = threading.Thread(target=lambda: slots.append(meet_task(here, secret)))
        thread.start()
        meet_driver(there, secret, 5)
        thread.join()
        assert slots == [5]
    # Who only sends the driver's own greeting back has proved nothing.
    here, there = socket.socketpair()
    with here, there:
        there.sendall(bytes(68))
        with pytest.raises(StrangerError):
            meet_task(here, secret)


def test_strangers_that_are_silent_or_talk_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "SECONDS", 0.2)
    with entrance() as inside:
        address = (inside.point.host, inside.point.port)
        with socket.create_connection(address) as silent, socket.create_connection(address) as loud:
            loud.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(200))
            for stranger in (silent, loud):
                stranger.settimeout(SECONDS)
                ended = False
                while not ended:
                    try:
                        ended = not stranger.recv(1000)
                    except ConnectionResetError:
                        ended = True
        assert inside.nobody()
        monkeypatch.setattr(handshake, "SECONDS", SECONDS)
        with task(inside.point, 2):
            assert inside.next()[0] == 2
            inside.close()


def test_another_certificate_is_not_taken() -> None:
    with entrance(encrypted=True) as inside, entrance(encrypted=True) as other:
        point = replace(inside.point, port=other.point.port)
        with pytest.raises(DriverUnreachableError, match="certificate verify failed"):
            connected(point)


def test_what_is_encrypted_is_not_read_by_others() -> None:
    with entrance(encrypted=True) as inside:
        in_the_clear = replace(inside.point, certificate="")
        with pytest.raises((ClosedError, StrangerError)), connected(in_the_clear) as connection:
            meet_driver(connection, inside.point.secret, 0)
        assert inside.nobody()


def test_nobody_comes_in_any_more() -> None:
    with entrance() as inside:
        inside.close()
        point = inside.point
    with pytest.raises(DriverUnreachableError, match=f"{HOST}:{point.port}"):
        connected(point)


def test_the_secret_is_not_shown() -> None:
    point = MeetingPoint(HOST, 1, b"hidden")
    assert "hidden" not in repr(point)

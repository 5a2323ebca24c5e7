"""Tasks that come in, and whoever else connects: only who knows the secret, either way."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicator.pipeline.workers import worker as worker
from replicator.pipeline.workers import worker_listener as doorkeeper
from replicator.pipeline.workers.frames import (
    ConnectionClosedError,
    WorkFailedError,
    frame_of,
    receive_answer,
    send,
)
from replicator.pipeline.workers.worker import (
    SLOT,
    ClusterAddress,
    DriverAddress,
    DriverUnreachableError,
    LocalAddress,
    answer_requests,
    connect,
    connected,
    prove_membership,
)
from replicator.pipeline.workers.worker_listener import AT_THE_DOOR
from replicator.pipeline.workers.worker_pool import (
    SECRET_SIZE,
    cluster_endpoint,
    local_endpoint,
)
from tests.support.servers.other_user import only_root, opened_by_stranger

SECONDS = 20.0
HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is turned away tries again at once."""
    monkeypatch.setattr(worker, "PAUSE", 0.0)


class Inside:
    """What an entrance has let in; without a folder it is one for tasks on other hosts."""

    def __init__(self, folder: Path | None) -> None:
        self._tasks: queue.Queue[tuple[int, socket.socket]] = queue.Queue()
        self._met: list[socket.socket] = []
        if folder is None:
            self.entrance = cluster_endpoint(HOST, HOST, 0, self._enter)
        else:
            self.entrance = local_endpoint(str(folder), self._enter)
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
def entrance(folder: Path | None = None) -> Iterator[Inside]:
    with closing(Inside(folder)) as inside:
        yield inside


@contextmanager
def on_a_cluster() -> Iterator[tuple[Inside, ClusterAddress]]:
    with entrance() as inside:
        assert isinstance(inside.point, ClusterAddress)
        yield inside, inside.point


@pytest.fixture
def point_of_nobody() -> ClusterAddress:
    """Where no driver listens any more."""
    with on_a_cluster() as (_, point):
        return point


def double(value: Any) -> bytes:
    if value < 0:
        raise ValueError(f"less than nothing: {value}")
    return b"%d" % (2 * value)


@contextmanager
def task(point: DriverAddress, slot: int) -> Iterator[list[BaseException]]:
    """A task that answers; what it ended with."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            with connect(point, slot) as connection:
                answer_requests(connection, double)
        except (ValueError, ConnectionClosedError) as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield ended
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.mark.parametrize("here", [False, True])
def test_a_task_answers_until_it_is_let_go(here: bool, tmp_path: Path) -> None:
    with entrance(tmp_path if here else None) as inside, task(inside.point, 3) as ended:
        slot, connection = inside.next()
        assert slot == 3
        for number in (1, 21):
            send(connection, frame_of(number))
            assert receive_answer(connection) == b"%d" % (2 * number)
        connection.close()
    assert ended == []


def test_work_that_fails_is_told_with_its_trace_and_ends_the_task(tmp_path: Path) -> None:
    with entrance(tmp_path) as inside, task(inside.point, 0) as ended:
        _, connection = inside.next()
        send(connection, frame_of(-1))
        with pytest.raises(WorkFailedError) as failed:
            receive_answer(connection)
        assert str(failed.value).strip().endswith("ValueError: less than nothing: -1")
    assert [str(error) for error in ended] == ["less than nothing: -1"]


def test_a_task_that_loses_its_network_fails_and_one_that_is_let_go_does_not() -> None:
    here, there = socket.socketpair()
    with here, there:
        # As when the other machine no longer answers.
        there.settimeout(0.01)
        with pytest.raises(ConnectionClosedError, match="timed out"):
            answer_requests(there, double)
        here.close()
        answer_requests(there, double)


def test_a_task_with_another_secret_is_turned_away() -> None:
    with on_a_cluster() as (inside, point):
        with task(replace(point, secret=secrets.token_bytes(SECRET_SIZE)), 0) as ended:
            pass
        assert [type(error) for error in ended] == [ConnectionClosedError]
        with task(point, 1):
            assert inside.next()[0] == 1, "and others still come in"
            inside.close()


@pytest.mark.parametrize("place", [0, SECRET_SIZE - 1])
def test_a_secret_that_differs_by_a_bit_is_refused(place: int) -> None:
    with on_a_cluster() as (inside, point):
        almost = bytearray(point.secret)
        almost[place] ^= 1
        with connected(point) as stranger, pytest.raises(ConnectionClosedError):
            prove_membership(stranger, bytes(almost), 0)
        assert inside.nobody()


def test_what_is_no_driver_is_left_and_told_no_secret(point_of_nobody: ClusterAddress) -> None:
    with socket.create_server((HOST, 0)) as listening:
        told: list[bytes] = []

        def pretend() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n")
                connection.settimeout(SECONDS)
                with contextlib.suppress(ConnectionResetError):
                    while received := connection.recv(1000):
                        told.append(received)

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(DriverUnreachableError, match=HOST):
            connect(replace(point_of_nobody, port=listening.getsockname()[1]), 1)
        thread.join()
        assert told
        assert point_of_nobody.secret not in b"".join(told)


def until_ended(stranger: socket.socket) -> None:
    """Read until the other side has closed the connection."""
    stranger.settimeout(SECONDS)
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while stranger.recv(1000):
            pass


def test_strangers_that_are_silent_or_talk_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorkeeper, "SECONDS", 0.2)
    with on_a_cluster() as (inside, point):
        address = (point.host, point.port)
        with socket.create_connection(address) as silent, socket.create_connection(address) as loud:
            loud.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(200))
            for stranger in (silent, loud):
                until_ended(stranger)
        assert inside.nobody()
        monkeypatch.setattr(doorkeeper, "SECONDS", SECONDS)
        with task(point, 2):
            assert inside.next()[0] == 2
            inside.close()


def hello(point: ClusterAddress) -> bytes:
    """The first bytes of a client that speaks TLS, and knows the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def test_who_sends_byte_after_byte_has_no_more_time_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doorkeeper, "SECONDS", 1.0)
    with on_a_cluster() as (inside, point):
        words = hello(point)[:200]
        with socket.create_connection((point.host, point.port)) as stranger:
            ended = threading.Event()

            def read() -> None:
                until_ended(stranger)
                ended.set()

            reading = threading.Thread(target=read)
            reading.start()
            sent = 0
            # Each byte in less than the time for all, which together are twenty times as many.
            while not ended.wait(0.1) and sent < len(words):
                with contextlib.suppress(OSError):
                    stranger.sendall(words[sent : sent + 1])
                sent += 1
            reading.join()
        assert sent < len(words)
        assert inside.nobody()


def test_silent_strangers_keep_nobody_out_and_are_few_at_a_time() -> None:
    with on_a_cluster() as (inside, point), contextlib.ExitStack() as strangers:
        before = threading.active_count()
        waiting = [
            strangers.enter_context(socket.create_connection((point.host, point.port)))
            for _ in range(3 * AT_THE_DOOR)
        ]
        for slot in range(3):
            with task(point, slot):
                number, connection = inside.next()
                assert number == slot
                assert threading.active_count() <= before + AT_THE_DOOR + 1
                connection.close()
        # Those who had been there longest have made room.
        until_ended(waiting[0])
        assert waiting[-1].fileno() >= 0
        assert inside.nobody()


def test_strangers_of_one_address_make_room_for_one_another() -> None:
    with on_a_cluster() as (inside, point), contextlib.ExitStack() as opened:
        first = opened.enter_context(connected(point))
        others = [
            opened.enter_context(
                socket.create_connection((point.host, point.port), source_address=("127.0.0.2", 0))
            )
            for _ in range(AT_THE_DOOR + 1)
        ]
        until_ended(others[0])
        # It was there before them, and comes in all the same.
        prove_membership(first, point.secret, 4)
        assert inside.next()[0] == 4


def test_tasks_come_in_while_strangers_go_on_connecting() -> None:
    with on_a_cluster() as (inside, point):
        over = threading.Event()

        def knock() -> None:
            with contextlib.ExitStack() as opened:
                while not over.is_set():
                    with contextlib.suppress(OSError):
                        opened.enter_context(
                            socket.create_connection(
                                (point.host, point.port), source_address=("127.0.0.2", 0)
                            )
                        )
                    if over.wait(0.001):
                        return

        knocking = threading.Thread(target=knock)
        knocking.start()
        try:
            for slot in range(5):
                with task(point, slot) as ended:
                    inside.next()[1].close()
                assert ended == []
        finally:
            over.set()
            knocking.join()


def test_another_certificate_is_not_taken_and_its_owner_told_no_secret() -> None:
    with on_a_cluster() as (_, point), on_a_cluster() as (inside, other):
        wrong = replace(point, port=other.port)
        with pytest.raises(DriverUnreachableError, match="certificate verify failed"):
            connect(wrong, 0)
        # Not even the other's own secret helps where the certificate is not the one that is known.
        with pytest.raises(DriverUnreachableError, match="certificate verify failed"):
            connect(replace(wrong, secret=other.secret), 0)
        assert inside.nobody()


def test_the_secret_is_not_heard_in_the_clear() -> None:
    with on_a_cluster() as (inside, point):
        with socket.create_connection((point.host, point.port)) as connection:
            connection.sendall(SLOT.pack(0) + point.secret)
            until_ended(connection)
        assert inside.nobody()


@pytest.mark.parametrize("here", [False, True])
def test_nobody_comes_in_any_more(here: bool, tmp_path: Path) -> None:
    with entrance(tmp_path if here else None) as inside:
        inside.close()
        point = inside.point
    where = point.folder if isinstance(point, LocalAddress) else f"{HOST}:{point.port}"
    with pytest.raises(DriverUnreachableError, match=where):
        connect(point, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_another_user_is_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with entrance(tmp_path) as inside:
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        # The task looks first; then it is the driver's turn.
        with pytest.raises(DriverUnreachableError, match="belongs to user"):
            connect(inside.point, 0)
        assert isinstance(inside.point, LocalAddress)
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(Path(inside.point.folder, inside.point.name)))
            with contextlib.suppress(BrokenPipeError):
                stranger.sendall(bytes(4))
            until_ended(stranger)
        assert inside.nobody()


@only_root
def test_another_user_can_not_reach_the_socket_of_tasks_on_this_host(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    with entrance(folder) as inside, task(inside.point, 1):
        inside.next()
        (place,) = folder.iterdir()
        assert opened_by_stranger([place]) == []
        inside.close()


def test_the_name_of_a_folder_may_be_longer_than_that_of_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with entrance(folder) as inside, task(inside.point, 7):
        assert inside.next()[0] == 7
        inside.close()


def test_the_secret_is_not_shown() -> None:
    assert "hidden" not in repr(ClusterAddress(HOST, 1, b"hidden", ""))

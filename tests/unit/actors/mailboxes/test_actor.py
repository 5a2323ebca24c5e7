from __future__ import annotations

import anyio
import pytest

from actors.mailboxes.actor import CONTROL_LIMIT, Mailbox, MailboxFullError


async def test_control_overtakes_rows_and_each_lane_keeps_its_order() -> None:
    mailbox: Mailbox[str] = Mailbox(4)
    await mailbox.put("row 1")
    await mailbox.put("row 2")
    mailbox.tell("control 1")
    mailbox.tell("control 2")
    assert [await mailbox.get() for _ in range(4)] == ["control 1", "control 2", "row 1", "row 2"]


async def test_rows_wait_for_room_and_control_does_not() -> None:
    mailbox: Mailbox[int] = Mailbox(1)
    await mailbox.put(1)
    sent: list[int] = []

    async def send() -> None:
        await mailbox.put(2)
        sent.append(2)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert sent == []
        mailbox.tell(0)
        assert await mailbox.get() == 0
        assert await mailbox.get() == 1
        await anyio.wait_all_tasks_blocked()
        assert sent == [2]
        assert await mailbox.get() == 2


async def test_what_belongs_to_a_message_that_has_waited_does_not_wait() -> None:
    mailbox: Mailbox[str] = Mailbox(1)
    await mailbox.put("end")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mailbox.put, "next end")
        await anyio.wait_all_tasks_blocked()
        mailbox.bring("part 1")
        mailbox.bring("part 2")
        assert [await mailbox.get() for _ in range(2)] == ["end", "part 1"]
        await anyio.wait_all_tasks_blocked()
        assert len(mailbox) == 1, "others count as much as messages that have waited"
        assert [await mailbox.get() for _ in range(2)] == ["part 2", "next end"]


async def test_all_who_wait_are_woken_each_time() -> None:
    mailbox: Mailbox[int] = Mailbox(1)
    await mailbox.put(0)
    async with anyio.create_task_group() as tasks:
        for number in range(1, 6):
            tasks.start_soon(mailbox.put, number)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            assert [await mailbox.get() for _ in range(6)] == [0, 1, 2, 3, 4, 5]


async def test_a_receiver_that_takes_no_rows_is_woken_by_control() -> None:
    mailbox: Mailbox[str] = Mailbox(1)
    await mailbox.put("row")
    got: list[str] = []

    async def receive() -> None:
        got.append(await mailbox.get(rows=False))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        assert got == []
        mailbox.tell("control")
    assert got == ["control"]
    assert mailbox.take() == "row"
    assert mailbox.take() is None


async def test_a_cancelled_receiver_loses_no_message() -> None:
    mailbox: Mailbox[int] = Mailbox(1)
    with anyio.move_on_after(0.01):
        await mailbox.get()
    await mailbox.put(1)
    assert await mailbox.get() == 1


def test_the_control_lane_has_a_limit() -> None:
    mailbox: Mailbox[int] = Mailbox(1)
    for number in range(CONTROL_LIMIT):
        mailbox.tell(number)
    with pytest.raises(MailboxFullError):
        mailbox.tell(-1)

"""What a target waits for, by what its threads are doing."""

from __future__ import annotations

import pytest

from actors.task.stalled_target import Stall, stall_of

LOCK = "Waiting for table metadata lock"
DISK = "Waiting for someone to free space"
NAMES = ["dm_meta", "orders"]


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        ([], None),
        ([(3, DISK, "COMMIT")], None),
        ([(6, DISK, "COMMIT")], f"waits for free disk space ({DISK}) in: COMMIT"),
        ([(b"6", b"Waiting for disk space", b"LOAD DATA LOCAL INFILE 'rows'")], "in: LOAD DATA"),
        ([(6, LOCK, "ALTER TABLE `shop`.`orders` ADD c INT")], "with ALTER TABLE, whose state is"),
        ([(6, LOCK, "ALTER TABLE `shop`.`others` ADD c INT")], None),
        ([(600, "copy to tmp table", "ALTER TABLE `shop`.`orders` ADD c INT")], None),
        ([(6, "Commit", "COMMIT")], None),
        ([(6, "Waiting for semi-sync ACK from slave", "COMMIT")], "does not end a COMMIT"),
        ([(16, "Commit", "COMMIT")], "does not end a COMMIT, whose state is 'Commit'"),
        ([(99, "Commit", "COMMIT"), (6, DISK, "COMMIT")], "waits for free disk space"),
        ([(None, None, "SELECT 1")], None),
    ],
)
def test_what_keeps_statements_from_ending(
    statements: list[tuple[object, object, object]], reason: str | None
) -> None:
    found = stall_of(statements, NAMES)
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert reason in found.reason


def test_values_of_rows_are_not_told() -> None:
    [found] = [stall_of([(7, DISK, "REPLACE INTO orders VALUES ('secret')")], NAMES)]
    assert found == Stall(f"the server waits for free disk space ({DISK}) in: REPLACE INTO", 7)

"""What a statement's context takes from the defaults of its server."""

from __future__ import annotations

import pytest

from replicator.mysql.session_context.session_defaults import SessionDefaults, offset_of
from replicator.mysql.session_context.statement_context import SYSTEM, StatementContext


@pytest.mark.parametrize(
    ("seconds", "offset"),
    [([0, 0], "+00:00"), ([32400], "+09:00"), ([-12600, -12600], "-03:30"), ([3600, 7200], ""),
     ([1050], "")],
)  # fmt: skip
def test_the_offset_of_a_zone(seconds: list[int], offset: str) -> None:
    assert offset_of(seconds) == offset


def test_the_zone_of_the_host_is_its_offset() -> None:
    defaults = SessionDefaults(system_zone="+09:00")
    assert defaults.complete(StatementContext(time_zone="SYSTEM")).time_zone == "+09:00"
    assert defaults.complete(StatementContext()).time_zone == "+09:00"


def test_a_zone_that_cannot_be_told_is_none_unless_it_was_used() -> None:
    assert SessionDefaults().complete(StatementContext()).time_zone is None
    assert SessionDefaults().complete(StatementContext(time_zone=SYSTEM)).time_zone == SYSTEM


def test_the_zone_of_the_session_goes_before_that_of_the_server() -> None:
    defaults = SessionDefaults(time_zone="+01:00", system_zone="+09:00")
    assert defaults.complete(StatementContext(time_zone="+02:00")).time_zone == "+02:00"
    assert defaults.complete(StatementContext()).time_zone == "+01:00"


@pytest.mark.parametrize("told", [False, True])
def test_a_missing_flag_means_something_where_the_server_sets_it(told: bool) -> None:
    defaults = SessionDefaults(explicit_timestamp_defaults=True, timestamps_logged=told)
    assert defaults.complete(StatementContext()).explicit_timestamp_defaults is not told


def test_numbers_of_collations_are_the_server_s() -> None:
    context = StatementContext(collation_ids=(45, 8, 2304))
    collations = {8: "latin1_swedish_ci", 2304: "utf8mb4_uca1400_ai_ci"}
    found = SessionDefaults(collations=collations).complete(context)
    assert found.connection_collation == "latin1_swedish_ci"
    assert found.server_collation == "utf8mb4_uca1400_ai_ci"

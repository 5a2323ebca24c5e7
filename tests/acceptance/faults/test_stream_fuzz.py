"""A task whose source sends what is broken in all ways, and another one that is not."""

from __future__ import annotations

import pytest

from tests.fuzz.whole_task import task_rounds

pytestmark = pytest.mark.slow


def test_the_task_lives_the_other_source_flows_and_all_is_equal_in_the_end() -> None:
    found = list(task_rounds("mariadb", 1, rounds=3))
    assert [f"{o.seed} {o.what} {o.why} ({o.fault})" for o in found if o.is_violation] == []

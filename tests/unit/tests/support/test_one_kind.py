"""Of cases that differ only in the kind of server, one is run."""

from __future__ import annotations

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from tests.support.one_kind import chosen, is_kind

CASES = [(f"{test} {kind}", test) for test in ("first", "second") for kind in "abc"]


def test_one_case_of_each_test_is_chosen_in_their_order() -> None:
    assert [case.split()[0] for case in chosen(CASES, "seed")] == ["first", "second"]


def test_the_same_seed_chooses_the_same_cases() -> None:
    assert chosen(CASES, "seed") == chosen(CASES, "seed")


def test_over_some_seeds_each_case_is_chosen() -> None:
    seen = {case for seed in range(40) for case in chosen(CASES, str(seed))}
    assert seen == {case for case, _ in CASES}


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("source", "mysql56_source", True),
        ("kind", MariaDBServer, True),
        ("mode", "optimistic", True),
        ("text", "optimistic", False),
        ("text", "", False),
        ("kind", int, False),
        ("target_server", "tidb", False),
    ],
)
def test_kinds_are_servers_and_modes(parameter: str, value: object, expected: bool) -> None:
    assert is_kind(parameter, value) is expected

"""A reader of a binlog is never silent about what is broken on its way: `tests.fuzz`, in short."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.conversations import record
from tests.fuzz.faults import Fault, Kind
from tests.fuzz.recording import Recording, load, save
from tests.fuzz.rounds import EQUAL, EXCEPTION, LOST, SILENCE, UNREADABLE, Judge

ROUNDS = 60
UNTOUCHED = Fault(Kind.CUT, 0, 1 << 30)
"""Of a packet that never comes."""


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """To load the system's takes longer than all the rest of a round."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, os.devnull)


@pytest.fixture(scope="module")
def recording(request: pytest.FixtureRequest) -> Recording:
    server = request.getfixturevalue("mariadb_source")
    return record(server, "mariadb", checksums=True, by_gtid=False)


def judge(request: pytest.FixtureRequest, kind: str, *, checksums: bool, by_gtid: bool) -> Judge:
    server = request.getfixturevalue(f"{kind}_source")
    return Judge(record(server, kind, checksums=checksums, by_gtid=by_gtid))


def violations(one: Judge) -> list[str]:
    found = (one.round(seed) for seed in range(ROUNDS))
    return [f"{o.recording}:{o.seed} {o.what} {o.why} ({o.fault})" for o in found if o.is_violation]


def test_a_mariadb_with_checksums(recording: Recording) -> None:
    assert violations(Judge(recording)) == []


def test_a_mysql_without_checksums(request: pytest.FixtureRequest) -> None:
    assert violations(judge(request, "mysql56", checksums=False, by_gtid=True)) == []


@pytest.mark.parametrize("kind", [Kind.SWALLOW, Kind.AGAIN])
def test_what_comes_before_the_events_of_a_file(recording: Recording, kind: Kind) -> None:
    one = Judge(recording)
    for number, flights in enumerate(recording.connections):
        begin = sum(len(flight.answers) for flight in flights[:-1])
        for packet in range(begin, begin + 4):
            outcome = one.run(0, Fault(kind, number, packet, renumbered=True))
            assert not outcome.is_violation, f"{outcome.fault}: {outcome.what} {outcome.why}"
            assert "no longer there" not in outcome.why, outcome.fault


@pytest.mark.slow
@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", "mysql56", "mysql"])
def test_all_kinds(request: pytest.FixtureRequest, kind: str, checksums: bool) -> None:
    assert violations(judge(request, kind, checksums=checksums, by_gtid=checksums)) == []


def test_the_judge_tells_outcomes_apart(recording: Recording) -> None:
    one = Judge(recording)
    last = len(recording.connections) - 1
    binlog = sum(len(flight.answers) for flight in recording.connections[last][:-1])
    end = binlog + len(recording.connections[last][-1].answers)
    found = {
        fault: one.run(0, fault).what
        for fault in (
            UNTOUCHED,
            Fault(Kind.CUT, last, end - 5, 0.5),
            Fault(Kind.FLIP, last, end - 5, 0.5),
        )
    }
    assert list(found.values()) == [EQUAL, LOST, UNREADABLE]


@pytest.mark.parametrize("wrong", ["a row", "a boundary", "a GTID"])
def test_the_judge_notices_what_is_missing(recording: Recording, wrong: str) -> None:
    one = Judge(recording)
    last = max(one.expected.boundaries)
    if wrong == "a row":
        del one.expected.items[5]
    elif wrong == "a boundary":
        del one.expected.boundaries[last]
    else:
        known = one.expected.boundaries[last]
        one.expected.boundaries[last] = type(known)("0-1-1", known.prepared, known.items)
    outcome = one.run(0, UNTOUCHED)
    assert outcome.what == SILENCE, outcome


def test_the_judge_notices_other_exceptions(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Judge(recording)
    monkeypatch.setattr("tests.fuzz.reading.BinlogStream.read_segment", lambda _: 1 // 0)
    outcome = one.run(0, UNTOUCHED)
    assert (outcome.what, outcome.is_violation) == (EXCEPTION, True)
    assert outcome.why.startswith("ZeroDivisionError at test_stream_fuzz.py:")


def test_a_recording_is_kept(recording: Recording, tmp_path: Path) -> None:
    kept = load(save(recording, tmp_path))
    assert kept == recording
    seeds = range(20)
    assert list(map(Judge(kept).fault, seeds)) == list(map(Judge(recording).fault, seeds))

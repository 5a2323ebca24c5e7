"""The connections of a comparison rest between their queries."""

from __future__ import annotations

import time
from typing import cast

import pytest

from replicator.mysql.connection.address import DatabaseAddress
from replicator.pipeline.compare.compare_rows import LONGEST_REST, CompareServers, Sessions
from replicator.pipeline.copy.source_stream import SourceStream


def rests(monkeypatch: pytest.MonkeyPatch, times: list[float], *, rest: float) -> list[float]:
    """The seconds of rest before queries at these times."""
    found: list[float] = []
    clock = iter([at for at in times for _ in range(2)][1:])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", found.append)
    stream = cast(SourceStream, object())
    servers = CompareServers(DatabaseAddress("nowhere", 1, "nobody", ""), {}, rest)
    sessions = Sessions(servers, {"": stream})
    for _ in times:
        assert sessions.to("") is stream
    return found


def test_as_long_as_the_query_took(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, [1.0, 3.0], rest=0.5) == [0.0, 1.0]


def test_not_longer_than_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, [1.0, 3600.0], rest=0.5) == [0.0, LONGEST_REST]


def test_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, [1.0, 3.0], rest=0.0) == []

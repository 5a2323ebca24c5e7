"""What tasks answer, and what is no answer: it is read without running anything."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from replicator.downstream.fence import Mismatch
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import (
    BatchResult,
    LeftOut,
    RowPosition,
    TargetOutcome,
    WriteOutcome,
)
from replicator.pipeline.copy.copy_chunk import ChunkOutcome, CopyOutcome
from replicator.pipeline.spark.json_results import AnswerError, from_json, to_json
from replicator.watermark import Watermark

FULL = BatchResult(
    (
        TargetOutcome(
            3,
            WriteOutcome.OUT_OF_STEP,
            1,
            2,
            3,
            4,
            5,
            1062,
            "an é, a \ud800 and a 😀",
            ("a: s.t", "b: s.t"),
            11,
            ("id", "shard"),
            "row",
            (RowPosition("a", "a: s.t", 1 << 41, 2, 1 << 41 | 4),),
            {("a", 0): Watermark(1, 1 << 62, 3), ("b", 15): Watermark(0, 0, -1)},
            Mismatch("what", "this", "that", "s.t", 4),
        ),
        TargetOutcome(0, WriteOutcome.DONE),
    ),
    (LeftOut(3, Member("a", TableName("s", "t")), ("no drops",), 7),),
)


def test_outcomes_of_a_batch_come_back_as_they_were() -> None:
    assert from_json(BatchResult, to_json(FULL)) == FULL
    assert from_json(BatchResult, to_json(BatchResult(()))) == BatchResult(())


def test_the_outcome_of_a_chunk_comes_back_without_the_chunk() -> None:
    chunk: Any = object()
    outcome = ChunkOutcome(chunk, CopyOutcome.REFUSED, 1, 2, message="no", line=bytes(range(256)))
    data = to_json(outcome, without=frozenset({"chunk"}))
    assert from_json(ChunkOutcome, data, chunk=chunk) == outcome


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.mknod, (str(self.path),)


def test_a_pickle_is_no_answer_and_is_not_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    bomb = pickle.dumps(Bomb(made))
    with pytest.raises(AnswerError, match="no BatchResult"):
        from_json(BatchResult, bomb)
    assert not made.exists()
    pickle.loads(bomb)
    assert made.exists(), "else the bomb proves nothing"


def changed(path: list[int], value: object) -> bytes:
    """The answer with something else at a place."""
    told = json.loads(to_json(FULL))
    place = told
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ([0], None),
        ([0], {"a": 1}),
        ([0, 0], []),
        ([0, 0, 0], "3"),
        ([0, 0, 0], True),
        ([0, 0, 0], 1.5),
        ([0, 0, 1], "no such outcome"),
        ([0, 0, 8], 5),
        ([0, 0, 9, 0], None),
        ([0, 0, 14], [[["a"], [1, 2, 3]]]),
        ([0, 0, 14], [[["a", 0], [1, 2]]]),
        ([0, 0, 14], [[["a", 0], [1, 2, "3"]]]),
        ([0, 0, 14], [[[[], 0], [1, 2, 3]]]),
        ([0, 0, 15], "a mismatch"),
        ([1, 0, 1, 1], "s.t"),
    ],
)
def test_what_has_another_form_is_no_answer(path: list[int], value: object) -> None:
    with pytest.raises(AnswerError):
        from_json(BatchResult, changed(path, value))


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000, b'{"__class__": "os.system"}']
)
def test_what_is_no_json_of_ours_is_no_answer(data: bytes) -> None:
    with pytest.raises(AnswerError):
        from_json(BatchResult, data)


def test_what_has_no_form_is_not_sent() -> None:
    with pytest.raises(TypeError, match="can't be told"):
        to_json([object()])

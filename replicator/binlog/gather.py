"""Copying pieces of a buffer one behind the other, compiled."""

from __future__ import annotations

import numpy as np

from replicator.compiled import INPUT, INTEGERS, NOTHING, OUTPUT, Bytes, Integers, compiled


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, OUTPUT, INTEGERS)
def _gather(data: Bytes, start: Integers, places: Integers, out: Bytes, begins: Integers) -> None:
    for index in range(places.shape[0]):
        begin, at = start[places[index]], begins[index]
        for byte in range(begins[index + 1] - at):
            out[at + byte] = data[begin + byte]


def gather(data: Bytes, start: Integers, places: Integers) -> tuple[Bytes, Integers]:
    """The pieces at some places, in a buffer of their own, and where each begins in it.

    Piece i is ``data[start[i]:start[i + 1]]``; the last number of ``start`` ends the last piece.
    """
    begins = np.zeros(len(places) + 1, np.int64)
    np.cumsum(np.diff(start)[places], out=begins[1:])
    out = np.empty(int(begins[-1]), np.uint8)
    _gather(data, start, places, out, begins)
    return out, begins

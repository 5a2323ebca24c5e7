"""Copy pieces of a buffer one after the other, compiled."""

from __future__ import annotations

import numpy as np

from replicator.kernels.compiled import INPUT, INTEGERS, NOTHING, OUTPUT, Bytes, Integers, compiled


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, OUTPUT)
def _copy(data: Bytes, begins: Integers, starts: Integers, out: Bytes) -> None:
    for piece in range(begins.shape[0]):
        size = starts[piece + 1] - starts[piece]
        # Slices let the compiler copy whole vectors.
        source = data[begins[piece] : begins[piece] + size]
        copy = out[starts[piece] : starts[piece] + size]
        for index in range(size):
            copy[index] = source[index]


def copy_pieces(data: Bytes, begins: Integers, starts: Integers, out: Bytes) -> None:
    """Copy the pieces of ``data`` that begin at ``begins`` to ``starts`` in ``out``.

    Each is as long as the room up to the next of ``starts``, which has one more, the end.
    """
    _copy(data, np.ascontiguousarray(begins), starts, out)


def gather_pieces(data: Bytes, begins: Integers, ends: Integers) -> tuple[Bytes, Integers]:
    """Return the pieces ``data[begins[i]:ends[i]]`` in a separate buffer.

    With the place of the beginning of each in it, and the end of the last.
    """
    starts = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=starts[1:])
    out = np.empty(starts[-1], np.uint8)
    copy_pieces(data, begins, starts, out)
    return out, starts

"""Copy pieces of a buffer into one contiguous buffer, in compiled code."""

from __future__ import annotations

import numpy as np

from replicator.kernels.compiled import INPUT, INTEGERS, NOTHING, OUTPUT, Bytes, Integers, compiled


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, OUTPUT)
def _copy(data: Bytes, begins: Integers, starts: Integers, out: Bytes) -> None:
    for piece in range(begins.shape[0]):
        size = starts[piece + 1] - starts[piece]
        # With slices the compiler can copy whole vectors.
        source = data[begins[piece] : begins[piece] + size]
        copy = out[starts[piece] : starts[piece] + size]
        for index in range(size):
            copy[index] = source[index]


def copy_pieces(data: Bytes, begins: Integers, starts: Integers, out: Bytes) -> None:
    """Copy the pieces of ``data`` that begin at ``begins`` to the positions ``starts`` in ``out``.

    Each piece ends where the next one starts in ``out``; the last item of ``starts`` is the end of
    the last piece.
    """
    _copy(data, np.ascontiguousarray(begins), starts, out)


def gather_pieces(data: Bytes, begins: Integers, ends: Integers) -> tuple[Bytes, Integers]:
    """Return the pieces ``data[begins[i]:ends[i]]`` in a separate buffer.

    The second result has the start of each piece in this buffer, and the end of the last piece.
    """
    starts = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=starts[1:])
    out = np.empty(starts[-1], np.uint8)
    copy_pieces(data, begins, starts, out)
    return out, starts

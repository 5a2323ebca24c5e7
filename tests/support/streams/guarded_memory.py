"""Arrays behind which nobody may read or write, and blocks that may have so much memory."""

from __future__ import annotations

import ctypes
import mmap
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from replicator.kernels.compiled import Bytes

_PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(size: int) -> Bytes:
    """An array of so many bytes that ends where a page begins that is not to be touched.

    The process dies of touching it (Linux, mprotect(2)).
    """
    pages = -(-size // _PAGE)
    region = mmap.mmap(-1, (pages + 1) * _PAGE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(region))
    guard = ctypes.c_void_p(place + pages * _PAGE)
    assert _LIBC.mprotect(guard, ctypes.c_size_t(_PAGE), 0) == 0, ctypes.get_errno()
    return np.frombuffer(region, np.uint8, size, pages * _PAGE - size)


def guarded_copy(data: bytes) -> Bytes:
    """The same bytes in such an array."""
    found = guarded(len(data))
    found[:] = np.frombuffer(data, np.uint8)
    return found


@contextmanager
def memory_below(size: int) -> Iterator[None]:
    """The block may not have more than so many bytes at once."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size

"""Compile loops over bytes with numba.

A kernel is compiled for one signature when its module is imported, and cached on disk
(`replicator.kernels.loop_folder`). In commands that call few kernels, each kernel is compiled at
its first call instead (`replicator.kernels.compilations`). The name of the cache file contains a
checksum of all modules that the kernel may call: the modules of its own folder, of
`replicator/rows/`, and `replicator/kernels/crc32.py`. This is needed because numba checks whether
the module of a kernel has changed, but not the modules that the kernel calls.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from ctypes import Structure
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core.caching import InTreeCacheLocator
from numpy.typing import NDArray

from replicator.kernels.compilations import COMPILATIONS
from replicator.kernels.loop_folder import compiling_alone, loop_folder


class LoopFolder(InTreeCacheLocator):
    """Tells numba which cache folder to use (its setting ``CACHE_LOCATOR_CLASSES``)."""

    def get_cache_path(self) -> str:
        """Return the cache folder for the loops of a module.

        Raises OSError if no folder is trusted.
        """
        return str(loop_folder(Path(self._py_file).parent))

    def get_source_stamp(self) -> bytes:
        """Return the content of the module.

        Other numba versions use its modification time instead.
        """
        return hashlib.sha256(Path(self._py_file).read_bytes()).digest()


_config: Any = numba.config
# The environment may set a folder (NUMBA_CACHE_DIR, NUMBA_CACHE_LOCATOR_CLASSES), which wins.
if not (_config.CACHE_DIR or _config.CACHE_LOCATOR_CLASSES):
    _config.CACHE_LOCATOR_CLASSES = f"{LoopFolder.__module__}.{LoopFolder.__qualname__}"

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

Number = Any
"""An integer inside a kernel. numba infers its width, while Python and numpy have separate
types."""

NOTHING, TRUTH, INTEGER, FLOATS = types.void, types.boolean, types.int64, types.float64[::1]
INPUT = types.Array(types.uint8, 1, "C", readonly=True)
"""Bytes that a kernel only reads."""
OUTPUT, INTEGERS, TABLE = types.uint8[::1], types.int64[::1], types.int64[:, ::1]
CHECKSUMS, TRUTHS = types.uint32[::1], types.boolean[::1]
TABLE_OF_BITS = types.uint64[:, ::1]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def record(shared: Any) -> Any:
    """Return the numba type for objects with shared numbers (`replicator.kernels.shared_numbers`).

    The type is an array whose only item is the record of the numbers. A call takes a tenth of the
    time with such an array that it takes with a record.
    """
    return types.Array(numba.from_dtype(np.dtype(shared)), 1, "C")


def record_of(shared: Structure) -> Any:
    """Return the numbers of an object in the form that kernels take: a view that keeps it alive."""
    return np.frombuffer(cast("Any", shared), np.dtype(type(shared)))


_ROOMS = Path(__file__).parents[1]
_SHARED = (
    Path(__file__),
    Path(__file__).with_name("crc32.py"),
    Path(__file__).with_name("gather.py"),
    _ROOMS / "mysql" / "column_types.py",
    *sorted((_ROOMS / "rows").rglob("*.py")),
    *sorted((_ROOMS / "binlog" / "events").glob("*.py")),
)
"""The modules that kernels of all folders may call, and the modules that compile kernels."""


@cache
def sources_checksum(folder: Path) -> str:
    """Return a checksum of the modules that kernels in a folder may call, as hexadecimal digits."""
    digest = hashlib.sha256()
    for path in (*_SHARED, *sorted(folder.glob("*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def compiled(result: object, *arguments: object) -> Callable[[Kernel], Kernel]:
    """Return a decorator that compiles a function for these argument types and this result type.

    The compiled function releases the interpreter's lock while it runs. It does not check bounds.
    """
    signature = cast("Any", result)(*arguments)

    def compile_function(function: Kernel) -> Kernel:
        folder = Path(cast("Any", function).__code__.co_filename).parent
        function.__qualname__ += f"_{sources_checksum(folder)}"
        later = COMPILATIONS.at_first_call
        now = None if later else signature
        began = time.monotonic()
        with compiling_alone(folder):
            try:
                found: Any = numba.njit(now, nogil=True, cache=True)(function)
            except RuntimeError:
                # There is no folder to cache the function in.
                found = numba.njit(now, nogil=True)(function)
        if later:
            compile_for, found.compile = found.compile, lambda _types: compile_for(signature)
        COMPILATIONS.add(sum(found.stats.cache_misses.values()), time.monotonic() - began)
        return cast("Kernel", found)

    return compile_function


def inlined(function: Kernel) -> Kernel:
    """Decorate a part of a kernel, which is compiled into each kernel that calls it."""
    return cast("Kernel", numba.njit(nogil=True)(function))

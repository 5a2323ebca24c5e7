"""Numbers that Python and compiled loops share in one place in memory, without copying.

This module imports nothing that compiles, because such numbers are also used without compiled
loops.
"""

from __future__ import annotations

from ctypes import Structure, c_bool, c_int64
from typing import TypeVar

_KINDS: dict[str, type[c_int64] | type[c_bool]] = {"int": c_int64, "bool": c_bool}

Shared = TypeVar("Shared", bound=Structure)


def shared(kind: type[Shared]) -> type[Shared]:
    """Decorate a class of objects whose numbers a compiled loop reads and writes.

    The numbers are the annotated fields of the class. An ``int`` is a signed number of 64 bits. A
    larger value silently loses bits, so the caller must check values that may be larger.
    """
    kind._fields_ = [(name, _KINDS[text]) for name, text in kind.__annotations__.items()]
    return kind

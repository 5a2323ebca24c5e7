"""Numbers that Python and a compiled loop share: they have one place, and none is copied.

It imports nothing that compiles: such numbers are also needed without compiled loops.
"""

from __future__ import annotations

from ctypes import Structure, c_bool, c_int64
from typing import TypeVar

_KINDS: dict[str, type[c_int64] | type[c_bool]] = {"int": c_int64, "bool": c_bool}

Shared = TypeVar("Shared", bound=Structure)


def shared(kind: type[Shared]) -> type[Shared]:
    """Decorate a class of objects whose numbers a compiled loop reads and writes.

    They are the fields that are annotated in the class: an ``int`` is a signed number of 64 bits; a
    larger one silently loses bits, so the caller checks numbers that may be larger.
    """
    kind._fields_ = [(name, _KINDS[text]) for name, text in kind.__annotations__.items()]
    return kind

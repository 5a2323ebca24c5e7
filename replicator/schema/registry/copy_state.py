"""Whether the rows of a member are on the target already, as far as the full copy goes."""

from __future__ import annotations

from enum import IntEnum


class CopyState(IntEnum):
    """How the full copy of a member ended.

    Without a full copy a member counts as copied, and so does one that is created later.
    """

    COPIED = 0
    """Its rows are on the target, or come by the binlog."""
    DEFERRED = 1
    """Some of its rows are to be copied yet; what is read of it is applied meanwhile."""
    LEFT_OUT = 2
    """None of its rows are copied: what is read of it is left out until they are. It would be
    there twice where no key tells them apart on the target."""
    AGAIN = 3
    """Its rows are being copied once more, from the saved position on."""
    RECOPY = 4
    """Its target is to be emptied, and all shards of the target copied anew: `LEFT_OUT` then."""

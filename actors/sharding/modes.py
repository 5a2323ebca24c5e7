"""The shard-modes that a task file can name: a folder for each, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from actors.sharding.coordination import ShardMode
from actors.sharding.optimistic.mode import OptimisticMode
from actors.sharding.pessimistic.mode import PessimisticMode

SHARD_MODES: Mapping[str, ShardMode] = {
    "": OptimisticMode(drops_targets=True),
    "optimistic": OptimisticMode(drops_targets=False),
    "pessimistic": PessimisticMode(),
}
"""By the `shard-mode` of the task file."""

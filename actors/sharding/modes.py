"""The shard modes that a task file can name: one folder and one entry here for each."""

from __future__ import annotations

from collections.abc import Mapping

from actors.sharding.optimistic.mode import OptimisticMode
from actors.sharding.pessimistic.mode import PessimisticMode
from actors.sharding.shard_mode import ShardMode

SHARD_MODES: Mapping[str, ShardMode] = {
    "": OptimisticMode(drops_targets=True),
    "optimistic": OptimisticMode(drops_targets=False),
    "pessimistic": PessimisticMode(),
}
"""The modes, by the `shard-mode` of the task file."""

"""Which task applies which buckets of a batch: pure.

A task is given all row events of a target of which it has buckets, and decodes all of them. So a
target is spread over as few tasks as keep the work even.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

Share = dict[int, frozenset[int]]
"""What one task applies: the buckets of each target, by the target's number."""


@dataclass(slots=True)
class _Load:
    share: Share
    size: float = 0.0


def spread(
    sizes: Mapping[int, int],
    buckets: Mapping[int, int],
    tasks: int,
    tied: Collection[int] = (),
) -> list[Share]:
    """The buckets of each target dealt out to ``tasks`` tasks; some may get nothing.

    One task has all buckets of all ``tied`` targets.

    ``sizes``: the bytes of each target's row events, ``buckets`` its number of buckets. Each bucket
    of each target is in exactly one share.
    """
    loads = [_Load({}) for _ in range(tasks)]
    even = max(1.0, sum(sizes.values()) / tasks)
    for target in sorted(sizes.keys() & set(tied)):
        loads[0].share[target] = frozenset(range(buckets[target]))
        loads[0].size += sizes[target]
    for target in sorted(sizes.keys() - set(tied), key=lambda number: (-sizes[number], number)):
        count = max(1, min(buckets[target], tasks, round(sizes[target] / even)))
        chosen = sorted(loads, key=lambda load: load.size)[:count]
        for index, load in enumerate(chosen):
            load.share[target] = frozenset(range(index, buckets[target], count))
            load.size += sizes[target] / count
    return [load.share for load in loads]

"""Which rows of a target a task applies; those of the others it need not write out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replicator.kernels.compiled import Truths
from replicator.kernels.crc32 import Checksums


@dataclass(frozen=True, slots=True)
class OwnBuckets:
    """Those of a target's ``count`` buckets that are ``own``."""

    count: int
    own: frozenset[int]

    @property
    def all(self) -> bool:
        """Whether no bucket is another task's."""
        return len(self.own) == self.count

    def holds(self, hashes: Checksums) -> Truths:
        """Whether rows with these hashes belong into them."""
        mine = np.zeros(self.count, np.bool_)
        mine[[*self.own]] = True
        chosen: Truths = mine[hashes % np.uint32(self.count)]
        return chosen

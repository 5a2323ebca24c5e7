"""Row events in one buffer, from those of a test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from replicator.rows.decoder.event_spans import EventSpans


def spans_of(events: Sequence[bytes]) -> EventSpans:
    """Events that were apart."""
    ends = np.cumsum([len(event) for event in events], dtype=np.int64)
    begins = ends - np.array([len(event) for event in events], np.int64)
    return EventSpans(np.frombuffer(b"".join(events), np.uint8), begins, ends)

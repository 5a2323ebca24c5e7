"""From packets to segments: the fast path, a compiled loop, and the slow path, event by event."""

"""Converts packets to segments: a fast path in a compiled loop, and a slow path event by event."""

"""Packets to segments: a fast path, the compiled loop, and a slow path, one event at a time."""

"""Positions in binlogs: GTID sets, anchor events, distances from both ends."""

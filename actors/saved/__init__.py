"""Reads what a task has saved: groups and locks, positions, retired shards."""

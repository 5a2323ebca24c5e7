"""Comparing the targets of a task with their shards, while rows are written or not."""

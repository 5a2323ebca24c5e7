"""Comparing a target with its shards: planning, reading, evaluating and correcting."""

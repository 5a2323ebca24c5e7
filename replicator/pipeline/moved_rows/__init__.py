"""Rows that move between shards: looking keys up in the shards, repairing targets."""

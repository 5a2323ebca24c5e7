"""Reconciling targets while a task runs: their rows become those of the shards again."""

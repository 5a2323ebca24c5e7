"""Validating that applied rows are on the target as their shards have them."""

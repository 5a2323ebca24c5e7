"""Shard DDL that waits for all shards: groups, and the locks that they share."""

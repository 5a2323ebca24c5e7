"""Shard DDL that is executed in stream order, once for all shards that bring it."""

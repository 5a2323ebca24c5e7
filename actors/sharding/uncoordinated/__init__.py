"""Shard DDL that is executed in the order of the binlog, once for all shards that make it."""

"""The structures of shards and targets, and the statements that filters ignore."""

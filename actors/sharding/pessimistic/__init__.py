"""The mode in which a schema change waits for all shards: groups, and the locks that they share."""

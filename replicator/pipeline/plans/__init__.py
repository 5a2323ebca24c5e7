"""Plans: how the row events of a shard become writes to its target."""

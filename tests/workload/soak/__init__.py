"""Long runs of a task whose shards are written to, change their schema, and meet faults."""

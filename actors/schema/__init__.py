"""What a task knows of the structures of its shards and targets, and which statements it omits."""

"""What a task has saved, as its actors read it: groups and locks, positions, retired shards."""

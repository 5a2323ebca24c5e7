"""Whether rows that were applied are on the target as their shards have them."""

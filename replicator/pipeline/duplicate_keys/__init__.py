"""Whether shards share values of their target's keys: sampled, or all compared."""

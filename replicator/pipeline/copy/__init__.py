"""The full copy of chunks, inside executors: reading shards, writing targets."""

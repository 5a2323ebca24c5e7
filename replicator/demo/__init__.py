"""`replicator demo`: merges live shards on private servers, and proves that the merge is exact."""

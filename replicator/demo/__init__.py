"""`replicator demo`: private servers, live shards, and the proof that the merge is exact."""

"""The mode that accepts a schema change if the shard's rows still fit into the common table."""

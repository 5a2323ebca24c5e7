"""Whether a target holds the rows of its shards: planned, read and compared, and mended."""

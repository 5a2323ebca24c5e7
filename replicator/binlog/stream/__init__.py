"""One source's binlog as a sequence of segments, and searches in it on separate connections."""

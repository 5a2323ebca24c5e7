"""One source's binlog as a sequence of segments, and looks into it apart from following it."""

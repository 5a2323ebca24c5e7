"""Row images of the binlog to text for executors."""

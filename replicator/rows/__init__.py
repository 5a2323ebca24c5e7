"""Row images of the binlog to text, as executors need it."""

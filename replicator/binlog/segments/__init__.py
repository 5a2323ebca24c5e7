"""What a binlog reader hands on: runs of row events in columns, cut at statements."""

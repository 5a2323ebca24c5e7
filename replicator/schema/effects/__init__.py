"""What statements do to structures, to columns and to the rows that are there."""

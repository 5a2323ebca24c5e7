"""What validation has saved: keys that wait, rows that differ, when targets were verified."""

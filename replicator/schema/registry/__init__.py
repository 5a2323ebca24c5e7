"""The structure of each member at each place of its binlog, and where it is known from."""

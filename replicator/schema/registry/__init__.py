"""The structure of each member at each position of its binlog, and its provenance."""

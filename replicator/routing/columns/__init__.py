"""Mapped and extracted columns: what the task file makes of the columns of a shard."""

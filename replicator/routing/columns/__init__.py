"""Mapped and extracted columns: the rules of the task file for the columns of a shard."""

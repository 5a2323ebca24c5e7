"""Shard DDL that is accepted if a shard's rows still fit into one table with those of the
others."""

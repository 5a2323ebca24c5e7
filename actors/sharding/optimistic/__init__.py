"""Shard DDL that is taken where a shard's rows still fit beside those of the others."""

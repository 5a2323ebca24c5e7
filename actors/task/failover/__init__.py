"""Continues with another server at a source's address."""

"""Applying rows and DDL to the targets, and saving how far each source has come."""

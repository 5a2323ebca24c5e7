"""Applying rows and DDL to the targets, and saving the progress of each source."""

"""Reads the sources' binlogs, and determines the effects of their statements."""

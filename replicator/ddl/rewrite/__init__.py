"""Statements with other names, storage or defaults; everything else stays as written."""

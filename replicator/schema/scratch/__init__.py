"""Learning the effect of a statement from an empty table on a real server."""

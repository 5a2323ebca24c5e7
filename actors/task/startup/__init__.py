"""The start of a run: checks, the lease, where each source goes on from, what has changed."""

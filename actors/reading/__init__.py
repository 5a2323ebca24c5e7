"""Following the binlogs of the sources, and what their statements mean."""

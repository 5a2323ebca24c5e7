"""Reading the sources' binlogs, and the meaning of their statements."""

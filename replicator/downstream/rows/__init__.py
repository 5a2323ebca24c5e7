"""Writing rows to a target: by LOAD DATA or statements, in transactions with their watermarks."""

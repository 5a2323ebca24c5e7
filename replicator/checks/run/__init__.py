"""The list of all checks, their input, and their execution."""

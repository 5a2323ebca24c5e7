"""The output of the commands on a terminal."""

"""What the commands show on a terminal."""

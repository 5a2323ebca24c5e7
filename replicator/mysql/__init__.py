"""What every room needs for a MySQL-compatible server: its address, connections, names."""

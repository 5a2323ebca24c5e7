"""What every part needs of a MySQL-compatible server: its address, connections, names."""

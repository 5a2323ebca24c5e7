"""The connection to a source: the dump request, packets, and the meaning of its errors."""

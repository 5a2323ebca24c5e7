"""The connection to a source: the dump request, packets, the meaning of its errors."""

"""The connection to a source: the dump request, packets, what its errors mean."""

"""The switch from shards to their target: the certificate, and what must hold before. Pure."""

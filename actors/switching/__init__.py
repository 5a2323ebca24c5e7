"""The switch from the shards to their targets: its checks, the freeze, the certificate."""

"""The environment variables from which a proposed task file takes its passwords."""

SHARDS_PASSWORD = "SHARD_PASSWORD"  # nosec B105
TARGET_PASSWORD = "TARGET_PASSWORD"  # nosec B105

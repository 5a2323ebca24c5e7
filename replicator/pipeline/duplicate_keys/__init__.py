"""Finding values of a target's keys that several shards have, in a sample or among all values."""

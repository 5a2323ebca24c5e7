"""The join rule: a target's structure is the least that fits the rows of all members. Pure."""

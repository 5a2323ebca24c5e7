"""The join rule: a target's structure is the least that takes the rows of all members. Pure."""

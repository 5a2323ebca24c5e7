"""The join rule: a target has the smallest structure that fits the rows of all members."""

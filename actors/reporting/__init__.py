"""The report of a task: what its log tells of a time, in a terminal and as a page."""

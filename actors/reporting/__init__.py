"""The report of a task: what its log says about a time span, on a terminal and as a page."""

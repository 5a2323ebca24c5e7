"""Expression filters: parsing, checking and evaluating expressions as the servers do."""

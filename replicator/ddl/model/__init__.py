"""Tables as data: what a definition in SQL says, without its text."""

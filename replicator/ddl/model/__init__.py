"""Tables and statements as data: what they say, without the ways of writing it."""

"""Tables and statements as data, independent of how they are written."""

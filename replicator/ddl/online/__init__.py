"""Online schema changes by gh-ost and pt-online-schema-change."""

"""Applying a batch of row events: decoding, filters, net effect, buckets."""

"""Packed bits, sets of labels, rows of unequal length, and what quality is measured by (numpy only)."""

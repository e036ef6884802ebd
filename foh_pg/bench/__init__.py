"""Programs that print the figures of the documentation."""

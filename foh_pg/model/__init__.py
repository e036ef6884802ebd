"""What an index serves: hash functions, thresholds, and how a search ranks."""

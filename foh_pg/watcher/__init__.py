"""The process that updates indexes by itself: its loop, its counters and its pages for monitoring."""

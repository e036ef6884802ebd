"""A run of an updater: its connection and lock, its record in foh.run, and the figures it leaves."""

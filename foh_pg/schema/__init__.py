"""Schema foh: its SQL files, and how a database is brought to what they say."""

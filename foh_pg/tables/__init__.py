"""What our tables hold, a module for each of them, and the session in which they are read and written."""

"""Online hashing learners; they know nothing of databases."""

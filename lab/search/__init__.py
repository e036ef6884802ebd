"""Searches in one PostgreSQL: ours, pgvector's, and what people put together from it, on the same rows."""

"""What the index brings and what it costs, measured on any data set: rivals, pgvector, the paper's tables.

Not part of the product: the lab imports foh_pg, and foh_pg never imports the lab.
"""

"""How well codes rank by label: the tables of the paper."""

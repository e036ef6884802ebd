"""Single questions, each a program whose figures stand in the documentation: `python -m lab study NAME`."""

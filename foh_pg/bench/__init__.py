"""Benchmarks: the figures of the documentation, on any data set, against rivals and what people use today."""

"""Benchmarks: the figures of the documentation, on any data set, against every rival and what people use today."""

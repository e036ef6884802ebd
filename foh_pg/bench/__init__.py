"""Benchmarks: what FOH brings on a data set, against every rival and against what people use today."""

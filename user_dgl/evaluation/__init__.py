"""Metrics of a finished run, with and without labels, and floors that results are compared with."""

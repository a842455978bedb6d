"""Scores of a finished run, against labels and without, and the floors that it is held against."""

"""Loaders of public data sets in their published layout, and the synthetic graph."""

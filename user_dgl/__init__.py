"""Unsupervised graph clustering that learns a cleaner sparse graph by structural entropy."""

__version__ = "0.3.0"

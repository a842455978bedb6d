"""Unsupervised graph clustering that learns a cleaner sparse graph by structural entropy."""

__version__ = "0.2.0"

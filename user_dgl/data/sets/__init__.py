"""Data sets in the layout in which they are published, and the synthetic graph."""

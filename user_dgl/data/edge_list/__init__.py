"""Graphs in files of one's own: edges, features and labels as text, arrays or matrices."""

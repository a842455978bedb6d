"""Readers of files that contain a graph and perhaps features and labels, one module per format."""

"""Weights of edges that tell how far each edge can be trusted, without clusters and labels."""

"""Clustering: k-means, consensus, number of clusters, smoothed view, graphs without features."""

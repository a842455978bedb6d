"""Clustering: k-means, consensus of replicas, number of clusters and the smoothed view."""

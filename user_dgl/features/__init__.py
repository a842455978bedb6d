"""Node features: preparation, truncated SVD, sparse products and nearest neighbours."""

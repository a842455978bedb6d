"""Node features: preparation, singular vectors, products with sparse rows, nearest rows."""

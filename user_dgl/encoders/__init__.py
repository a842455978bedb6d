"""Models that USER supports: each maps a normalised graph and features to embeddings H (N, d).

Adding one is a file here and a line in `user_dgl.config.model.ENCODERS`.
"""

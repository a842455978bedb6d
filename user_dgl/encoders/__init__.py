"""Encoders that USER supports. Each maps a normalised graph and features to embeddings H (N, d).

A new encoder needs a module in this folder and an entry in `user_dgl.config.model.ENCODERS`.
"""

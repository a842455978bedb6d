"""Loss terms as pure functions of tensors. `user_dgl.model.loss` multiplies them by their weights.

The modules of this package do not depend on a model or on training.
"""

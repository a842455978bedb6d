"""Terms of losses as pure functions of tensors; `user_dgl.model.loss` weighs them."""

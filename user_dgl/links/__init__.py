"""The task link_prediction: held-out pairs, the learned score and its files."""

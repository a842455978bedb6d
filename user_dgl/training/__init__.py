"""The stages before training, the loop that all trainers share, and the trainers."""

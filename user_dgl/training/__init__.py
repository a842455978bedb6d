"""Training: the stages before it, the loop that all trainers share, and the trainers."""

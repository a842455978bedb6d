"""From settings to a run directory: data, noise, training, scores."""

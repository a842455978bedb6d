"""The steps of a run, from settings to a run directory: data, noise, training, scores."""

"""Where A' comes from: candidate pairs, first weights of the observed edges, learned weights."""

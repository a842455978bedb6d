"""The graph A': candidate pairs, first weights of the observed edges, and learned weights."""

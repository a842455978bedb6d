"""Training by several processes, each of which holds a part of the graph."""

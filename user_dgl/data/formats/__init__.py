"""Files of one format each that hold a graph, alone or with features and labels."""

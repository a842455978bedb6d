"""Load the user's own graph files: edges, features and labels as text, arrays or matrices."""

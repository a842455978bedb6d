"""Output of a run: its directory, exports and the report."""

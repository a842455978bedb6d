"""What a run leaves behind: its directory, exports and the report."""

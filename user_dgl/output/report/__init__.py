"""The report of a run: one page with its pictures."""

"""The parts of ``tools/reproduce.py``."""

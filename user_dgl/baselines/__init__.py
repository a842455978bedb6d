"""The methods that the paper compares USER with, each in a file of its own."""

from user_dgl.baselines.base import Baseline, Problem
from user_dgl.baselines.registry import BASELINES, resolve_baseline

__all__ = ["BASELINES", "Baseline", "Problem", "resolve_baseline"]

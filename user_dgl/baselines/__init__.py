"""The methods that the paper compares USER with, one file each."""

from user_dgl.baselines.base import Baseline, Problem
from user_dgl.baselines.registry import BASELINES, resolve_baseline

__all__ = ["BASELINES", "Baseline", "Problem", "resolve_baseline"]

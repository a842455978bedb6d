"""Folders of the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
TOOLS = ROOT / "tools"

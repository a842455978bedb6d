"""Cells of tools/reproduce.py that are not trained."""

import pytest
from cells_of_tables import result_of
from reproduction import cells as cells_module


@pytest.fixture
def trained(monkeypatch):
    """Cells that would have been trained; nothing is."""
    ran = []
    result = result_of()

    def train(cell, *_):
        ran.append(cell)
        return result

    monkeypatch.setattr(cells_module, "_train", train)
    return ran

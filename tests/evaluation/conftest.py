"""What holds for every score."""

import pytest


@pytest.fixture
def quiet(recwarn, capsys):
    """No score warns or prints."""
    yield
    assert not [str(w.message) for w in recwarn]
    assert capsys.readouterr() == ("", "")

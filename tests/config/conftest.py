"""Files of settings, and the messages they are refused with."""

import os

import pytest

from user_dgl.config import (
    load_config,
)
from user_dgl.errors import InputError


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "some.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def refused(write):
    """The message that a file and overrides are refused with, less the folder it lies in."""

    def refused(text, *overrides):
        path = None if text is None else write(text)
        with pytest.raises(InputError) as caught:
            load_config(path, overrides)
        message = str(caught.value)
        assert len(message.splitlines()) == 1
        assert message.isprintable()
        return message.replace(f"{path.parent}{os.sep}", "") if path else message

    return refused

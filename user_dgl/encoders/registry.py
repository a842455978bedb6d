"""Look-up of encoders by name, see `user_dgl.config.model.ENCODERS`."""

from user_dgl.config.model import ENCODERS
from user_dgl.encoders.base import Encoder
from user_dgl.runtime.registry import load_object


def encoder_class(name: str) -> type[Encoder]:
    """Return the class of an encoder, given its name in the settings."""
    return load_object(ENCODERS[name].encoder)

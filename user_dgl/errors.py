"""The errors that the commands turn into one line and an exit status."""


class InputError(ValueError):
    """Input or settings that cannot be used (exit status 2).

    The message is one line: the file and line or row where known, what is wrong and what to do.
    """


class NonFiniteLossError(RuntimeError):
    """A loss term became NaN or infinite; raised before the update (exit status 3)."""

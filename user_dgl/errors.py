"""The errors that the commands turn into one line and an exit status."""


class InputError(ValueError):
    """Input or settings that cannot be used (exit status 2).

    The message is one line: the file and line or row where known, what is wrong and what to do.
    """


class ToldError(InputError):
    """One that the first process of a run has told already; the others end without a word."""


class RankError(RuntimeError):
    """Another process of the run has ended or does not answer (exit status 4)."""


class StoppedError(RuntimeError):
    """Training was asked to stop by a signal, and has saved what it has.

    Attributes
    ----------
    number : int
        The signal; the exit status is 128 more.
    """

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


class NonFiniteLossError(RuntimeError):
    """A loss term became NaN or infinite; raised before the update (exit status 3)."""

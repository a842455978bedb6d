"""The errors that the commands turn into one line and an exit status."""

_LONGEST = 1000


class InputError(ValueError):
    """Input or settings that cannot be used (exit status 2).

    The message is one line: the file and line or row where known, what is wrong and what to do.
    What it quotes of a file is made so: line ends and control characters are spelled out, and the
    middle of a very long one is left out.
    """

    def __init__(self, message: str):
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(message))
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
        super().__init__(text)


class ReportedError(InputError):
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

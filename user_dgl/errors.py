"""Errors that the commands report as one line, each with an exit status."""

_LONGEST = 1000


class InputError(ValueError):
    """Input or settings that cannot be used (exit status 2).

    The message is one line: the file and the line or row if they are known, what is wrong and what
    to do. The message may quote a file, so line ends and control characters are written as escape
    sequences, and the middle of a message of more than 1,000 characters is left out.
    """

    def __init__(self, message: str):
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(message))
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
        super().__init__(text)


class ReportedError(InputError):
    """An error that the first process of a run has already reported.

    The other processes end without a message.
    """


class RankError(RuntimeError):
    """Another process of the run has ended or does not answer (exit status 4)."""


class StoppedError(RuntimeError):
    """A signal asked training to stop, and training has saved its state.

    Attributes
    ----------
    number : int
        Number of the signal. The exit status is 128 + ``number``.
    """

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


class NonFiniteLossError(RuntimeError):
    """A loss term or an embedding became NaN or infinite (exit status 3)."""

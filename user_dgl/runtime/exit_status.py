"""Exit status of a command, and the line that says why it ended."""

import os
import sys
from collections.abc import Callable

from user_dgl.errors import (
    InputError,
    NonFiniteLossError,
    RankError,
    ReportedError,
    StoppedError,
)
from user_dgl.runtime.process import discard_stdout


def exit_status(command: Callable[[], int | None]) -> int:
    """Run a command, and turn its errors into a line on stderr and an exit status.

    0: done. 2: bad input, or too little memory or disk. 3: a loss that is not finite. 4: a process
    of several that is lost. 128 + n: stopped by signal n.
    """
    status = 0
    try:
        status = command() or 0
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk or a reader that has gone shows here at the latest
        return status
    except ReportedError:
        return 2
    except InputError as error:
        return _said(f"error: {error}", 2)
    except NonFiniteLossError as error:
        return _said(f"stopped: {error}", 3)
    except RankError as error:
        return _said(f"stopped: {error}", 4)
    except StoppedError as error:
        if os.environ.get("RANK", "0") == "0":  # the first of several processes speaks for all
            _said(f"stopped {error}", 128)
        return 128 + error.number
    except KeyboardInterrupt as error:
        return _said(" ".join(["interrupted", *map(str, error.args)]), 130)
    except MemoryError:
        return _said("error: the memory of the machine does not suffice", 2)
    except RuntimeError as error:
        first = (str(error).splitlines() or [""])[0]
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
            return _said(f"error: {first}: set device=cpu or a smaller model", 2)
        if "can't allocate memory" in first:  # torch's on a CPU
            return _said("error: the memory of the machine does not suffice", 2)
        raise
    except BrokenPipeError:  # the reader of our output has gone, as in `user-dgl config X | head`
        discard_stdout()
        return status
    except OSError as error:
        if error.strerror is None:
            raise
        what = "stdout" if error.filename is None else error.filename
        if error.filename is None:
            discard_stdout()
        return _said(f"error: {InputError(f'{what}: {error.strerror}')}", 2)


def _said(line: str, status: int) -> int:
    print(f"user-dgl: {line}", file=sys.stderr)
    return status

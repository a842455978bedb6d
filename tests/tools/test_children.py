"""tools/reproduction/children.py: functions in processes of their own."""

import os
import subprocess
import threading
import time

import pytest
from reproduction.children import Children, Failure

# A child imports the package before its first function, which takes seconds on a busy machine.
PATIENCE = 120


def test_a_function_gets_its_arguments_in_another_process(tmp_path):
    file = tmp_path / "parent"
    seconds = Children({}).function(subprocess.check_call, ["sh", "-c", f"echo $PPID > {file}"])
    assert seconds > 0
    child = int(file.read_text())
    with pytest.raises(ProcessLookupError):  # it has ended
        os.kill(child, 0)


def test_the_error_of_a_function_is_told():
    with pytest.raises(Failure, match=r"CalledProcessError: .*non-zero exit status 3"):
        Children({}).function(subprocess.check_call, ["sh", "-c", "exit 3"])


def test_stop_ends_functions(tmp_path):
    children, started = Children({}), tmp_path / "started"
    failures = []

    def run():
        try:
            children.function(subprocess.check_call, ["sh", "-c", f"touch {started}; sleep 9"])
        except Failure as failure:
            failures.append(str(failure))

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    children.stop()
    thread.join(timeout=5)
    assert failures == ["exit status -15"]
    with pytest.raises(Failure, match="interrupted"):
        children.function(subprocess.check_call, ["true"])

"""The fuzzer of the readers, for some seconds."""

import subprocess
import sys

import pytest
from paths import ROOT


@pytest.mark.parametrize("target", ["readers", "config"])
def test_nothing_is_found(target, tmp_path):
    pytest.importorskip("atheris")
    command = [sys.executable, "tools/fuzz_readers.py", target, "--seconds", "10"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "0 faults" in done.stdout

"""tools/mutants.py on a small clone, and the mutants of this clone."""

import os
import shutil
import signal
import subprocess
import sys
import time

import mutants
import pytest
from paths import TOOLS

TESTS = """
import time
import pytest
import toy_package

@pytest.fixture
def doubled():
    return 2 * toy_package.half(8)

def test_half():
    assert toy_package.half(8) == 4

def test_set_up(doubled):
    assert doubled == 8

def test_other():
    assert toy_package.other() == "other"

@pytest.mark.slow
def test_slow():
    assert toy_package.other() == "another"
"""
CODE = """def half(x):
    return x / 2


def other():
    return "other"
"""
ENTRY = """
- name: {name}
  file: toy_package/__init__.py
  old: "{old}"
  new: "{new}"
  tests: [{tests}]
  why: Something is wrong.
"""


def entry(name, old, new, tests="tests/test_toy.py"):
    return ENTRY.format(name=name, old=old, new=new, tests=tests)


HALF = entry("sign", "x / 2", "-x / 2")
QUOTED = '\\"other\\"'
SURVIVES = entry("survives", QUOTED, '\\"else\\"', "tests/test_toy.py::test_half")


@pytest.fixture
def clone(tmp_path):
    """Function that writes entries into a small clone and runs the tool there."""
    if shutil.which("git") is None:
        pytest.skip("git is missing")
    folder = tmp_path / "clone"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "toy_package").mkdir()
    (folder / "tests").mkdir()
    (folder / "tools/mutants").mkdir(parents=True)
    (folder / "toy_package/__init__.py").write_text(CODE)
    (folder / "tests/test_toy.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow:\n    gpu:\n")

    def run(*entries, arguments=()):
        (folder / "tools/mutants/toy.yaml").write_text("".join(entries))
        return mutants.main(["--root", str(folder), *arguments])

    run.folder = folder
    return run


def states(output):
    """State of each mutant in the output of the tool."""
    rows = (line.split() for line in output.splitlines() if " s  " in line)
    return {row[3]: row[0] for row in rows}


def test_killed_survived_and_broken(clone, capsys):
    broken = entry("import", "def half", "raise OSError\\ndef half")
    set_up = entry("set-up", "x / 2", "1 / 0", "tests/test_toy.py::test_set_up")
    before = {path: path.read_bytes() for path in clone.folder.rglob("*.py")}
    assert clone(HALF, SURVIVES, broken, set_up, arguments=["--jobs", "2"]) == 1
    output = capsys.readouterr().out
    assert states(output) == {
        "sign": "killed",
        "survives": "SURVIVED",
        "import": "broken",
        "set-up": "broken",
    }
    assert "(tests/test_toy.py::test_half)" in output
    assert output.splitlines()[-1].endswith("1 killed, 1 SURVIVED, 2 broken")
    assert {path: path.read_bytes() for path in clone.folder.rglob("*.py")} == before


def test_all_killed(clone, capsys):
    """The second change is of the same length: no compiled file of the first one is left."""
    assert clone(HALF, entry("factor", "x / 2", "x / 3"), entry("name", QUOTED, '\\"athor\\"')) == 0
    assert set(states(capsys.readouterr().out).values()) == {"killed"}


@pytest.mark.parametrize(("more", "state"), [("", "broken"), ("  timeout_kills: true\n", "killed")])
def test_a_timeout_kills_only_where_the_entry_says_so(clone, capsys, more, state):
    endless = entry("endless", "return x / 2", "import time; time.sleep(60)") + more
    assert clone(endless, arguments=["--timeout", "4"]) == (state == "broken")
    assert states(capsys.readouterr().out) == {"endless": state}


@pytest.mark.parametrize("pattern", ["s?gn", "sign", "toy*", "toy", "toy_package/*"])
def test_patterns_select(clone, capsys, pattern):
    assert clone(HALF, SURVIVES, arguments=["--list", pattern]) == 0
    assert ("survives" in capsys.readouterr().out) == ("toy" in pattern)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([HALF, HALF], "sign: the name stands at tools/mutants/toy.yaml:2 too"),
        ([entry("gone", "x / 4", "x / 2")], "toy.yaml:2: gone: old occurs 0 times"),
        ([entry("often", "return", "yield")], "often: old occurs 2 times"),
        ([entry("same", "x / 2", "x / 2")], "same: old and new are equal"),
        ([entry("no-python", "x / 2", "x /")], "no-python: new makes toy_package/__init__.py no"),
        ([entry("no-test", "x / 2", "x", "tests/test_none.py")], "tests/test_none.py is missing"),
        ([HALF + "  when: never\n"], "toy.yaml:2: unknown key 'when'"),
        ([HALF + "  timeout_kills: 3\n"], "timeout_kills: expected true or false"),
        (["- name: a\n"], "toy.yaml:1: the key file is missing"),
        (["- a\n"], "toy.yaml:1: expected keys and values"),
        (["name: a\n"], "expected a list of entries"),
        (["- name: ["], "toy.yaml: not YAML"),
        ([], "expected a list of entries"),
    ],
)
def test_unusable_entries(clone, capsys, entries, message):
    assert clone(*entries) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["none*"], "no mutant has such a name"), (["--jobs", "0"], "expected more than 0")],
)
def test_unusable_options(clone, capsys, arguments, message):
    assert clone(HALF, arguments=arguments) == 2
    assert message in capsys.readouterr().err


def test_tests_that_fail_anyway_kill_nothing(clone, capsys):
    (clone.folder / "tests/test_red.py").write_text("def test_red():\n    assert False\n")
    assert clone(entry("sign", "x / 2", "-x / 2", "tests/test_red.py")) == 2
    assert "without a change, and do not: tests/test_red.py::test_red" in capsys.readouterr().err


def test_a_package_from_elsewhere_is_refused(clone, capsys, monkeypatch, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/toy_package.py").write_text(CODE)
    found = mutants.environment
    monkeypatch.setattr(
        mutants, "environment", lambda copy: found(copy) | {"PYTHONPATH": str(tmp_path / "site")}
    )
    (clone.folder / "toy_package/__init__.py").write_text(CODE)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # else the folder of the copy comes first of all
    assert clone(HALF) == 2
    assert "and not from the copy" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(clone, tmp_path, number):
    """What was started ends, and the copies are removed."""
    started = tmp_path / "started"
    endless = f"open({str(started)!r}, 'w'); import time; time.sleep(60)"
    clone(entry("endless", "return x / 2", endless), arguments=["--list"])
    (tmp_path / "copies").mkdir()
    command = [sys.executable, str(TOOLS / "mutants.py"), "--root", str(clone.folder)]
    # A shell starts background commands with SIGINT ignored, and the tool would inherit that.
    before = signal.signal(number, signal.SIG_DFL)
    tool = subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(tmp_path / "copies")}, start_new_session=True
    )
    signal.signal(number, before)
    while not started.exists():
        assert tool.poll() is None
        time.sleep(0.05)
    tool.send_signal(number)
    assert tool.wait(20) == 130
    assert not list((tmp_path / "copies").iterdir())


def test_entries_fit_the_code():
    assert mutants.faults(mutants.read_mutants()) == []


@pytest.mark.slow
def test_all_mutants_are_killed():
    assert mutants.main([]) == 0

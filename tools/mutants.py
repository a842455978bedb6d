#!/usr/bin/env python3
"""Changes that destroy the code on purpose, and whether the tests named for each of them fail.

``python tools/mutants.py [PATTERN ...] [--jobs N] [--list]``

A mutant is an entry of a file in ``tools/mutants/``. It replaces one text in one file. The tool
copies the files of the clone to a temporary folder. There it applies one mutant at a time, runs the
tests that the mutant names, and takes the change back. The clone itself is never changed.

A line for each mutant says how it ended:

- ``killed``: a test failed, as it should.
- ``SURVIVED``: all tests passed, so no test that the mutant names identifies the code.
- ``broken``: the tests could not run, for example because the changed file cannot be imported. An
  error in the set-up of a test is broken too, and so is a run that is stopped after ``--timeout``,
  unless the entry says ``timeout_kills: true``.

Before that, all named tests must pass without a change. Tests marked slow or gpu do not run. Exit
status: 0 all mutants were killed, 1 some were not, 2 unusable entries or options, or tests that
fail without a change, 130 interrupted.
"""

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from fnmatch import fnmatch
from pathlib import Path
from queue import Queue

import yaml

from user_dgl.config.strict_yaml import parse_yaml
from user_dgl.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "tools/mutants"
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not gpu")
# Exit statuses of pytest.
_PASSED, _FAILED = 0, 1
# Runs of pytest that have not ended. They are in sessions of their own, so that no Ctrl-C reaches
# them.
_RUNNING: set[subprocess.Popen] = set()


@dataclass(frozen=True)
class Mutant:
    """A change that destroys something, and the tests of which at least one must then fail.

    Attributes
    ----------
    name : str
        Different from all other names, in all files.
    file : str
        The changed file, from the root of the clone.
    old, new : str
        ``old`` occurs exactly once in the file and becomes ``new``.
    tests : tuple of str
        Files of tests, or ids of tests as ``pytest`` takes them.
    why : str
        What the change destroys, in one sentence.
    timeout_kills : bool
        Whether tests that do not end count as failed.
    place : str
        File and line of the entry, for messages.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    timeout_kills: bool = False
    place: str = ""


_KEYS = {field.name for field in fields(Mutant)} - {"place"}
_NEEDED = _KEYS - {"timeout_kills"}
# Seconds that the tests of unchanged code get at least, which include the start of pytest.
_LEAST_TIMEOUT = 120.0


@dataclass(frozen=True)
class Outcome:
    """How the tests of a mutant ended.

    Attributes
    ----------
    state : str
        ``killed``, ``SURVIVED`` or ``broken``.
    seconds : float
    said : str
        The first test that failed, or what went wrong.
    """

    state: str
    seconds: float
    said: str = ""


# -------------------------------------------------------------------------------------------------
# Entries


def read_mutants(root: Path = ROOT) -> list[Mutant]:
    """Read the entries of all files in ``tools/mutants/``, in the order of files and lines.

    Raises
    ------
    InputError
        A file is no list of entries, or an entry has other keys or types than `Mutant`.
    """
    mutants = []
    for path in sorted((root / FOLDER).glob("*.yaml")):
        text, source = path.read_text(encoding="utf-8"), f"{FOLDER}/{path.name}"
        entries = parse_yaml(text, source, None)
        if not isinstance(entries, list):
            raise InputError(f"{source}: expected a list of entries: begin each with `- name:`")
        nodes = yaml.compose(text, yaml.SafeLoader).value
        for entry, node in zip(entries, nodes, strict=True):
            mutants.append(_mutant(entry, f"{source}:{node.start_mark.line + 1}"))
    return mutants


def _mutant(entry: object, place: str) -> Mutant:
    """Make a mutant of an entry as YAML has it."""
    if not isinstance(entry, dict):
        raise InputError(f"{place}: expected keys and values, such as `name: value`")
    wrong = sorted(set(entry) - _KEYS)
    if wrong:
        raise InputError(f"{place}: unknown key {wrong[0]!r}: known are {', '.join(sorted(_KEYS))}")
    missing = sorted(_NEEDED - set(entry))
    if missing:
        raise InputError(f"{place}: the key {missing[0]} is missing: add it")
    for key in sorted(_NEEDED - {"tests"}):
        if not isinstance(entry[key], str):
            raise InputError(f"{place}: {key}: expected text: put it into quotes")
    tests = entry["tests"]
    if not isinstance(tests, list) or not tests or not all(isinstance(one, str) for one in tests):
        raise InputError(f"{place}: tests: expected a list of files or ids of tests")
    if not isinstance(entry.get("timeout_kills", False), bool):
        raise InputError(f"{place}: timeout_kills: expected true or false")
    return Mutant(**{**entry, "tests": tuple(tests)}, place=place)


def faults(mutants: Iterable[Mutant], root: Path = ROOT) -> list[str]:
    """What is wrong with entries in view of the clone, one line each.

    Each ``old`` must occur exactly once in its file, the changed file must still be Python, files
    of tests must exist, and names must be unique.
    """
    found: list[str] = []
    names: dict[str, str] = {}
    for mutant in mutants:
        at = f"{mutant.place}: {mutant.name}"
        if mutant.name in names:
            found.append(f"{at}: the name stands at {names[mutant.name]} too: choose another")
        names[mutant.name] = mutant.place
        for test in mutant.tests:
            if not (root / test.partition("::")[0]).is_file():
                found.append(f"{at}: tests: {test} is missing: name another")
        path = root / mutant.file
        if not path.is_file():
            found.append(f"{at}: file: {mutant.file} is missing: name another or drop the entry")
            continue
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            found.append(
                f"{at}: old occurs {text.count(mutant.old)} times in {mutant.file}: expected once, "
                "so write the text as it stands there now"
            )
        elif mutant.old == mutant.new:
            found.append(f"{at}: old and new are equal: change something")
        elif path.suffix == ".py":
            try:
                ast.parse(changed(text, mutant))
            except SyntaxError as error:
                found.append(f"{at}: new makes {mutant.file} no Python ({error.msg}): correct it")
    return found


def changed(text: str, mutant: Mutant) -> str:
    """The text of a file after the change."""
    return text.replace(mutant.old, mutant.new)


def selected(mutants: Iterable[Mutant], patterns: Iterable[str]) -> list[Mutant]:
    """Mutants whose name, changed file or file of entries matches a pattern; all without one.

    Raises
    ------
    InputError
        A pattern matches nothing.
    """
    mutants, patterns = list(mutants), list(patterns)

    def matches(mutant: Mutant, pattern: str) -> bool:
        entries = Path(mutant.place.rpartition(":")[0])
        named = (mutant.name, mutant.file, str(entries), entries.name, entries.stem)
        return any(fnmatch(name, pattern) for name in named)

    for pattern in patterns:
        if not any(matches(mutant, pattern) for mutant in mutants):
            raise InputError(f"{pattern}: no mutant has such a name or file: see --list")
    return [m for m in mutants if not patterns or any(matches(m, one) for one in patterns)]


# -------------------------------------------------------------------------------------------------
# Copies of the clone


def copy_of_clone(root: Path, folder: Path) -> Path:
    """Copy the files of a clone that git knows or would add, as they stand now, to a folder.

    Raises
    ------
    InputError
        The folder is no clone.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if listed.returncode:
        raise InputError(f"{root}: git does not list its files: run this in a clone")
    for name in filter(None, listed.stdout.split("\0")):
        source, target = root / name, folder / name
        if source.is_file():  # and not deleted since
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


def environment(copy: Path) -> dict[str, str]:
    """Environment in which Python finds the package in a copy, before one that is installed."""
    # Compiled files are recognised by size and second of the source, which two mutants can share.
    return os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # pytest starts faster, and no test needs a plugin
    }


def check_imports(copy: Path, files: Iterable[str]) -> None:
    """Check that Python imports the packages of the files from a copy.

    Raises
    ------
    InputError
        Another package of the same name comes first.
    """
    packages = {Path(file).parts[0] for file in files}
    for name in sorted(each for each in packages if (copy / each / "__init__.py").exists()):
        command = [sys.executable, "-c", f"import {name}; print({name}.__file__)"]
        done = subprocess.run(
            command, cwd=copy, env=environment(copy), capture_output=True, text=True
        )
        found = done.stdout.strip()
        if done.returncode or not Path(found).resolve().is_relative_to(copy.resolve()):
            raise InputError(
                f"{name} is imported from {found or 'nowhere'} and not from the copy {copy}: "
                "uninstall the package, or use another environment"
            )


def run_tests(copy: Path, tests: Iterable[str], timeout: float) -> tuple[int | None, str]:
    """Run tests in a copy; the exit status of pytest, None after the timeout, and its output."""
    process = subprocess.Popen(
        [sys.executable, *PYTEST, *tests],
        cwd=copy,
        env=environment(copy),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    _RUNNING.add(process)
    try:
        output = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        stop(process)
        return None, process.communicate()[0]
    except BaseException:
        stop(process)
        raise
    finally:
        _RUNNING.discard(process)
    return process.returncode, output


def stop(process: subprocess.Popen) -> None:
    """Kill a run of pytest, and what its tests have started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def first_failure(output: str) -> str | None:
    """The first test that failed, from the short summary of pytest; not one whose set-up did."""
    found = re.search(r"^FAILED (.+?)(?: - .*)?$", output, re.MULTILINE)
    return found.group(1) if found else None


@contextmanager
def applied(mutant: Mutant, copy: Path) -> Iterator[None]:
    """Apply a mutant to a copy, and take it back in the end."""
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(changed(text, mutant), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def outcome(mutant: Mutant, copy: Path, timeout: float) -> Outcome:
    """Apply a mutant to a copy and run its tests."""
    started = time.perf_counter()
    with applied(mutant, copy):
        status, output = run_tests(copy, mutant.tests, timeout)
    seconds = time.perf_counter() - started
    if status is None:
        state = "killed" if mutant.timeout_kills else "broken"
        return Outcome(state, seconds, f"stopped after {timeout:g} s")
    if status == _PASSED:
        return Outcome("SURVIVED", seconds, mutant.why)
    failed = first_failure(output)
    if status == _FAILED and failed:
        return Outcome("killed", seconds, failed)
    last = (output.strip().splitlines() or ["no output"])[-1]
    return Outcome("broken", seconds, f"pytest ended with {status}: {last}")


# -------------------------------------------------------------------------------------------------
# The command


def tests_of(mutants: Iterable[Mutant]) -> list[str]:
    """All named tests, each once; not those whose whole file is named too."""
    every = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    return [test for test in every if "::" not in test or test.partition("::")[0] not in every]


def check(mutants: list[Mutant], root: Path, jobs: int, timeout: float) -> int:
    """Run the mutants and print how each ended; the exit status."""
    counts = dict.fromkeys(("killed", "SURVIVED", "broken"), 0)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        jobs = min(jobs, len(mutants))
        copies = [copy_of_clone(root, Path(folder) / str(number)) for number in range(jobs)]
        for copy in copies:
            check_imports(copy, (mutant.file for mutant in mutants))
        tests = tests_of(mutants)
        status, output = run_tests(copies[0], tests, max(timeout, _LEAST_TIMEOUT) * len(tests))
        if status != _PASSED:
            said = first_failure(output) or (output.strip().splitlines() or ["no output"])[-1]
            raise InputError(f"the tests must pass without a change, and do not: {said}")
        print(
            f"{len(tests)} tests or files pass in {time.perf_counter() - started:.0f} s", flush=True
        )
        free: Queue[Path] = Queue()
        for copy in copies:
            free.put(copy)

        def run(mutant: Mutant) -> Outcome:
            copy = free.get()
            try:
                return outcome(mutant, copy, timeout)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(run, mutant): mutant for mutant in mutants}
            try:
                for done in as_completed(running):
                    ended = done.result()
                    counts[ended.state] += 1
                    row = f"{ended.state:8}  {ended.seconds:5.1f} s  {running[done].name}"
                    print(f"{row}  ({ended.said})", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(_RUNNING):
                    stop(process)
                raise
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    print(f"{len(mutants)} mutants in {time.perf_counter() - started:.0f} s: {told}")
    return int(counts["killed"] < len(mutants))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="names of mutants, changed files, or files of entries such as core; may have * and ?",
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants at a time")
    parser.add_argument(
        "--timeout", type=float, default=300.0, metavar="S", help="most seconds for each mutant"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the clone; default: this one")
    arguments = parser.parse_args(argv)
    try:
        if arguments.jobs < 1 or not arguments.timeout > 0:
            raise InputError("--jobs and --timeout: expected more than 0")
        every = read_mutants(arguments.root)
        wrong = faults(every, arguments.root)
        if wrong:
            raise InputError(wrong[0] + (f" (and {len(wrong) - 1} more)" if wrong[1:] else ""))
        mutants = selected(every, arguments.patterns)
        if arguments.list:
            for mutant in mutants:
                print(f"{mutant.name}\n    {mutant.file}: {mutant.why}")
            return 0
        if not mutants:
            raise InputError(f"{arguments.root / FOLDER}: no mutants: add a file of entries")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        return check(mutants, arguments.root, arguments.jobs, arguments.timeout)
    except InputError as error:
        print(f"mutants: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutants: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

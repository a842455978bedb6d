"""Stages: what is measured, and what is shown on a terminal."""

import io
import time

import pytest
from tqdm import tqdm

from user_dgl.runtime import progress
from user_dgl.runtime.progress import StageClock, steps


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on which each change of a bar is drawn."""
    drawn = _Terminal()
    monkeypatch.setattr(
        progress, "tqdm", lambda **settings: tqdm(file=drawn, mininterval=0, **settings)
    )
    return drawn


def test_entries_and_lines():
    lines = []
    clock = StageClock(lines.append)
    with clock.stage("critic"):
        time.sleep(0.01)
    with clock.stage("user", epochs=3) as entry:
        entry["restarts"] = 2
    critic, user = clock.entries
    assert set(critic) == {"name", "epochs", "seconds", "cpu_seconds", "peak_memory_mb"}
    assert 0.01 <= critic["seconds"] <= clock.seconds()
    assert (user["name"], user["epochs"], user["restarts"]) == ("user", 3, 2)
    assert [line.split(" | ")[0] for line in lines] == ["Stage critic", "Stage user"]


def test_a_stage_that_fails_is_no_entry():
    clock = StageClock()
    with pytest.raises(ValueError, match="why"), clock.stage("critic"):
        raise ValueError("why")
    assert clock.entries == []
    assert progress._BAR.get() is None


def test_steps_are_shown_on_a_terminal(terminal):
    with StageClock(shows_progress=True).stage("critic"):
        assert "critic ..." in terminal.getvalue()
        for fold in steps(range(4)):
            assert list(steps([fold])) == [fold]  # shows nothing of its own
        assert "4/4" in terminal.getvalue()
        list(steps(iter("ab"), 2))  # the next loop of the stage counts from 0
        assert "2/2" in terminal.getvalue()
    assert "1/1" not in terminal.getvalue()


@pytest.mark.parametrize("shows", [False, True])
def test_nothing_is_shown_in_a_file_or_without_a_clock(shows, capsys):
    with StageClock(shows_progress=shows).stage("critic"):
        assert list(steps(range(3))) == [0, 1, 2]
    assert list(steps(range(3))) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")

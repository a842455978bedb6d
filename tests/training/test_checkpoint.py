"""Files are whole or absent, and only plain content is loaded."""

import os
import pickle
import stat

import pytest
import torch

from user_dgl.errors import InputError
from user_dgl.runtime.files import write_atomically
from user_dgl.training.checkpoint import load_checkpoint, save_checkpoint


def test_round_trip(tmp_path):
    state = {"tensor": torch.arange(3), "nested": {"list": [1, 2.5, None, "x"]}}
    save_checkpoint(tmp_path / "c.pt", state)
    loaded = load_checkpoint(tmp_path / "c.pt")
    assert torch.equal(loaded["tensor"], state["tensor"])
    assert loaded["nested"] == state["nested"]
    assert [p.name for p in tmp_path.iterdir()] == ["c.pt"]


def test_a_failed_write_leaves_the_last_good_file(tmp_path):
    file = tmp_path / "c.pt"
    save_checkpoint(file, {"epoch": 1})

    def fail(out):
        out.write(b"half")
        raise OSError("disk full")

    with pytest.raises(InputError, match=r"c\.pt: cannot be written: disk full"):
        write_atomically(file, fail)
    assert load_checkpoint(file) == {"epoch": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["c.pt"]


def test_a_link_in_the_way_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".c.pt.part").symlink_to(victim)
    save_checkpoint(tmp_path / "c.pt", {"epoch": 1})
    assert victim.read_text() == "mine"
    assert (tmp_path / ".c.pt.part").is_symlink()


def test_the_mode_of_a_file_is_what_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "f", lambda file: file.write(b"x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_missing_truncated_and_foreign_files(tmp_path):
    with pytest.raises(InputError, match="no checkpoint"):
        load_checkpoint(tmp_path / "none.pt")
    file = tmp_path / "c.pt"
    save_checkpoint(file, {"tensor": torch.zeros(1000)})
    whole = file.read_bytes()
    for size in (0, 500, len(whole) - 10):
        file.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"c\.pt: not a readable checkpoint \(cut off or dam"):
            load_checkpoint(file)
    torch.save([1], file)
    with pytest.raises(InputError, match=r"c\.pt: not a checkpoint of user_dgl"):
        load_checkpoint(file)


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    file = tmp_path / "c.pt"
    torch.save({"x": Evil()}, file, pickle_module=pickle)
    with pytest.raises(InputError, match="not a readable checkpoint"):
        load_checkpoint(file)

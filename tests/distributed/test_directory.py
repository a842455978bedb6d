"""A graph cut beforehand: every rank reads its own file."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from paths import CONFIGS, ROOT, TOOLS

from user_dgl.cli import main
from user_dgl.config import load_config
from user_dgl.distributed.directory import PartitionDirectory
from user_dgl.errors import InputError

CONFIG = str(CONFIGS / "default.yaml")
DATA = (
    "data={kind: synthetic, synthetic: {num_nodes: 200}}", "model.num_clusters=5",
    "train.epochs=5", "train.precision=float64",
)  # fmt: skip


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    out = tmp_path_factory.mktemp("parts") / "two"
    assert main(["partition", CONFIG, *DATA, "--parts", "2", "--out", str(out)]) == 0
    return out


def test_files_of_a_partition(parts, capsys):
    directory = PartitionDirectory(parts)
    of_ranks = [directory.read_rank_data(rank, 2) for rank in range(2)]
    assert sum(data.shard.part.num_owned for data in of_ranks) == 200
    for data in of_ranks:
        own = data.shard.part.num_owned
        assert data.feat.shape[0] == own < 200
        assert data.first_weight is data.view is None  # the ranks find them
    files = sorted(file.name for file in parts.iterdir())
    assert files == ["config.yaml", "rank-0-of-2.pt", "rank-1-of-2.pt", "whole.pt"]
    # Labels are for scores, in the one file that no training reads.
    assert "labels" in directory.read_whole()
    assert not any("label" in name for name in torch.load(parts / files[1], weights_only=True))
    assert main(["partition", CONFIG, *DATA, "--parts", "2", "--out", str(parts)]) == 2
    assert "not empty" in capsys.readouterr().err


def test_training_from_parts_equals_training_from_data(parts, tmp_path):
    launch = [sys.executable, str(TOOLS / "launch.py"), "--nproc", "2", "--", "train"]
    outcomes = []
    for name, more in (("whole", ()), ("parts", (f"distributed.partition={parts.name}",))):
        run_dir = tmp_path / name
        done = subprocess.run(
            [*launch, CONFIG, *DATA, *more, "eval.floors=false", f"output_dir={run_dir}"],
            capture_output=True, text=True, cwd=parts.parent,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        # The settings repeat the run from any folder.
        made = load_config(run_dir / "config.yaml").distributed.partition
        assert made == (str(parts) if more else None)
        result = json.loads((run_dir / "result.json").read_text())
        for key in ("seconds_per_epoch", "seconds_total", "peak_memory_mb", "stages", "ranks"):
            result.pop(key)
        losses = [*result.pop("loss").values(), *result.pop("restart_losses")]
        scores = list(result.pop("scores").values())
        text = (run_dir / "clusters.csv").read_text()
        outcomes.append((result, text, np.load(run_dir / "embedding.npy"), losses, scores))
    assert outcomes[0][:2] == outcomes[1][:2]
    # To rounding: METIS may cut one graph in two ways, and then sums have another order.
    np.testing.assert_allclose(outcomes[0][2], outcomes[1][2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outcomes[0][3], outcomes[1][3], rtol=1e-8)
    # Of embeddings that are stored in float32.
    np.testing.assert_allclose(outcomes[0][4], outcomes[1][4], rtol=1e-6)


def test_parts_for_other_settings_or_ranks_are_refused(parts, tmp_path):
    directory, config = PartitionDirectory(parts), load_config(CONFIG, DATA)
    directory.check(config, 2)
    directory.check(load_config(CONFIG, [*DATA, "train.epochs=9", "loss.npsi_weight=2"]), 2)
    with pytest.raises(InputError, match="2 parts for 3 processes"):
        directory.check(config, 3)
    with pytest.raises(InputError, match="other settings of seed, structure"):
        directory.check(load_config(CONFIG, [*DATA, "seed=1", "structure.prior=uniform"]), 2)
    trained = load_config(CONFIG, [*DATA, "train.structure_lr=0.1"])
    assert trained.learns_structure != config.learns_structure
    with pytest.raises(InputError, match=r"other settings of train\.structure_lr"):
        directory.check(trained, 2)
    with pytest.raises(InputError, match="no partition there"):
        PartitionDirectory(tmp_path).check(config, 2)
    copied = tmp_path / "rank-0-of-2.pt"
    copied.write_bytes((parts / copied.name).read_bytes()[:1000])
    with pytest.raises(InputError, match="not a readable checkpoint"):
        PartitionDirectory(tmp_path).read_rank_data(0, 2)
    torch.save({"part": {}}, copied)
    with pytest.raises(InputError, match="not of this version"):
        PartitionDirectory(tmp_path).read_rank_data(0, 2)
    copied.unlink()
    with pytest.raises(InputError, match=r"rank-0-of-2\.pt: not there: all machines must see"):
        PartitionDirectory(tmp_path).read_rank_data(0, 2)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    empty = tmp_path / "empty"
    empty.mkdir()
    linked = tmp_path / "linked"
    linked.symlink_to(empty)
    command = ["partition", CONFIG, *DATA, "--parts", "2", "--out"]
    monkeypatch.chdir(empty)
    for out in (str(linked), "."):
        assert main([*command, out]) == 2
        assert "a link, a mount point or the current folder" in capsys.readouterr().err


def test_the_file_of_the_result_is_of_this_version(parts, tmp_path):
    """One process of one part reads it, as the first of several does."""
    one = tmp_path / "one"
    assert main(["partition", CONFIG, *DATA, "--parts", "1", "--out", str(one)]) == 0
    whole = torch.load(one / "whole.pt", weights_only=True)
    del whole["clean"]
    torch.save(whole, one / "whole.pt")
    done = subprocess.run(
        [sys.executable, str(TOOLS / "launch.py"), "--nproc", "1", "--", "train", CONFIG, *DATA,
         f"distributed.partition={one}", "eval.floors=false", f"output_dir={tmp_path / 'run'}"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2
    assert "whole.pt: not of this version of user_dgl ('clean'): write the folder" in done.stderr
    assert "Traceback" not in done.stderr

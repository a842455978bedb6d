"""``extends``: a config over another one."""

import pytest

from user_dgl.cli import main
from user_dgl.config import load_config
from user_dgl.errors import InputError


@pytest.fixture
def files(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "base.yaml").write_text("seed: 3\ntrain:\n  epochs: 7\n  lr: 0.5\n")
    (tmp_path / "middle.yaml").write_text("extends: base.yaml\ntrain:\n  lr: 0.25\n")
    (tmp_path / "deep" / "top.yaml").write_text(
        "extends: ../middle.yaml\nmodel:\n  num_clusters: 4\n"
    )
    return tmp_path


def test_own_keys_count_before_those_of_the_other_file(files):
    config = load_config(files / "deep" / "top.yaml", ["train.epochs=2"])
    assert (config.seed, config.train.epochs, config.train.lr) == (3, 2, 0.25)
    assert config.model.num_clusters == 4


def test_an_empty_section_leaves_the_other_file_s_keys(files):
    (files / "own.yaml").write_text("extends: base.yaml\ntrain:\n  # lr: 1.0\n")
    assert load_config(files / "own.yaml").train.epochs == 7


def test_the_resolved_settings_are_whole(files, capsys):
    assert main(["config", str(files / "deep" / "top.yaml")]) == 0
    text = capsys.readouterr().out
    assert "extends" not in text
    (files / "resolved.yaml").write_text(text)
    assert load_config(files / "resolved.yaml") == load_config(files / "deep" / "top.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: nowhere.yaml\n", r"own.yaml:1: extends: .*nowhere.yaml: not found; the path is"),
        ("extends: own.yaml\n", r"own.yaml:1: extends: .*own.yaml extends this file"),
        ("extends: circle.yaml\n", r"circle.yaml:1: extends: .*own.yaml extends this file"),
        ('extends: "a\\0b"\n', r"own.yaml:1: extends: expected the path of a YAML file"),
        ("extends: 3\n", r"own.yaml:1: extends: expected the path of a YAML file, got 3"),
        ("extends: bad.yaml\n", r"bad.yaml:2: unknown key 'train.epoch': did you mean"),
        ("extends: base.yaml\ntrain: 3\n", r"own.yaml:2: train is a section"),
        ("train:\n  extends: base.yaml\n", r"own.yaml:2: unknown key 'train.extends'"),
    ],
)
def test_faults_name_file_and_line(files, text, message):
    (files / "own.yaml").write_text(text)
    (files / "circle.yaml").write_text("extends: own.yaml\n")
    (files / "bad.yaml").write_text("train:\n  epoch: 3\n")
    with pytest.raises(InputError, match=message):
        load_config(files / "own.yaml")

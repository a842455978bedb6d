"""Settings that have no effect or do not go together, and the name of a config."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from user_dgl.config import (
    config_name,
    load_config,
)
from user_dgl.errors import InputError


def test_link_prediction_has_one_process():
    config = load_config(None, ["task=link_prediction", "model.observed_mix=0"])
    with pytest.raises(InputError, match="distributed run needs task=clustering"):
        config.check_distributed()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["data.noise.rate=0.5"], "data.noise.rate"),
        (["data.noise.kind=file", "data.noise.file=x", "data.noise.rate=1"], "data.noise.rate"),
        (["data.noise.file=x.npz"], "data.noise.file"),
        (["data.noise.attack.steps=5"], "data.noise.attack has no effect with data.noise.kind"),
        (
            ["data.noise.kind=metattack", "data.noise.attack={form: exact, block_nodes: 9}"],
            "data.noise.attack.block_nodes=9 has no effect with data.noise.attack.form=exact",
        ),
        (["structure.learnable=false", "structure.candidates.feature_knn=5"], "candidates"),
        (["structure.learnable=false", "structure.candidates.k_hop=5"], "candidates"),
        (["structure.learnable=false", "structure.prior=feature_cosine"], "prior"),
        (
            ["structure.learnable=false", "loss.observed_edge_weight=1"],
            "loss.observed_edge_weight",
        ),
        (["structure.candidates.refresh_every=5"], "refresh_every"),
        (["links.test_share=0.2"], "links has no effect with task=clustering"),
        (["structure.critic.folds=5"], "structure.critic has no effect with structure.prior"),
        (["loss.reconstruction_form=cross_entropy"], "loss.reconstruction_form"),
        (
            ["structure.candidates.refresh_every=5", "structure.candidates.feature_knn=5"],
            "refresh_every",
        ),
    ],
)
def test_inert_settings(overrides, said):
    lines = load_config(None, overrides).inert_settings()
    assert any(said in line for line in lines)
    assert all(len(line.splitlines()) == 1 for line in lines)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["data.noise.kind=random_flip", "data.noise.rate=0.5"],
        ["data.noise.kind=file", "data.noise.file=x.npz"],
        ["structure.candidates.feature_knn=5", "structure.prior=feature_cosine"],
        ["structure.candidates.refresh_every=5", "structure.candidates.k_hop=1"],
        ["structure.candidates.refresh_every=5", "structure.candidates.uniform=1"],
        ["structure.candidates.refresh_every=5", "structure.candidates.same_cluster=1"],
        ["structure.learnable=false"],
        ["loss.observed_edge_weight=1"],
        ["structure.prior=link_critic", "structure.critic.folds=5"],
        # The learned link score has the critic's settings, whatever the prior.
        ["task=link_prediction", "links.test_share=0.2", "structure.critic.folds=5"],
        ["task=link_prediction", "structure.learnable=false", "structure.critic.hops=1"],
    ],
)
def test_settings_that_have_an_effect(overrides):
    assert load_config(None, overrides).inert_settings() == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("configs/paper/cora.yaml", "paper/cora"),
        ("configs/cora.yaml", "cora"),
        (Path("/a/b/configs/x/y.yml"), "x/y"),
        ("/configs/old/configs/a.yaml", "a"),
        ("mine.yaml", "mine"),
        ("some/folder/mine.yaml", "mine"),
        ("configs.yaml", "configs"),
        ("my.run.yaml", "my.run"),
        # A name that climbs would put the run directory outside `outputs`.
        ("configs/../mine.yaml", "mine"),
        ("configs/paper/../cora.yaml", "cora"),
        ("../mine.yaml", "mine"),
        ("./configs/./cora.yaml", "cora"),
    ],
)
def test_config_name(path, name):
    assert config_name(path) == name


def test_no_torch():
    # `user-dgl --help` and `user-dgl config` must answer at once.
    code = (
        "import sys, user_dgl.config as c; c.load_config(None, ['seed=1']); "
        "assert 'torch' not in sys.modules and 'dgl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)

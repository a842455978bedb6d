"""What all baselines share: training, checkpoints, settings and the command.

What a method is, its own file compares with a dense oracle.
"""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.baselines import BASELINES, resolve_baseline
from user_dgl.baselines.trainer import BaselineTrainer
from user_dgl.cli import main
from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model, load_data
from user_dgl.errors import InputError, NonFiniteLossError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.preparation import prepare_features
from user_dgl.graph import Graph
from user_dgl.pipeline.inputs import read_inputs
from user_dgl.pipeline.train import train
from user_dgl.runtime.streams import Stream, seed_torch
from user_dgl.training.checkpoint import load_checkpoint, save_checkpoint
from user_dgl.training.hooks import Hooks

SMALL = SyntheticConfig(num_nodes=150, num_blocks=3, average_degree=12, mixing=0.1)
DATA = ["data.synthetic.num_nodes=300", "data.synthetic.num_blocks=3", "model.num_clusters=3"]
FEW = [*DATA, "data.synthetic.num_nodes=60"]
# Epochs that suffice to see the loss fall.
EPOCHS = {"deepwalk": 3, "age": 20, "gca": 20, "arga": 15, "arga_cg": 10, "gic": 25}


def trainer_of(kind, more=(), **callbacks):
    """A baseline's trainer on the small block model, and the rows that it will report."""
    data, rows = block_model(SMALL), []
    epochs = EPOCHS.get(kind, 40)
    overrides = [f"model.kind={kind}", "model.num_clusters=3", f"baseline.epochs={epochs}"]
    if kind == "deepwalk":  # few nodes, so few updates an epoch
        overrides += ["baseline.lr=0.1", "baseline.hidden_feats=32"]
    overrides += more
    config, _ = resolve_baseline(load_config(None, overrides))
    feat = prepare_features(data.feat, config.features)
    hooks = Hooks(record=rows.append, shows_progress=False, **callbacks)
    trainer = BaselineTrainer(data.graph, feat, config, hooks)
    return trainer, rows


@pytest.mark.parametrize("kind", BASELINES)
def test_a_baseline_finds_the_blocks_as_its_loss_falls_and_repeats_itself(kind):
    trainer, rows = trainer_of(kind)
    fit = trainer.fit()
    # What the players of a game lose is not bound to fall.
    name = "reconstruction" if kind.startswith("arga") else "loss"
    assert np.mean([row[name] for row in rows[-3:]]) < rows[0][name]
    assert clustering_metrics(block_model(SMALL).labels, fit.clusters)["nmi"] > 50
    assert (fit.weight == 1).all()
    few = [trainer_of(kind, ["baseline.epochs=2", f"seed={seed}"])[0].fit() for seed in (0, 0, 1)]
    np.testing.assert_array_equal(few[0].embedding, few[1].embedding)
    np.testing.assert_array_equal(few[0].clusters, few[1].clusters)
    assert not np.array_equal(few[0].embedding, few[2].embedding)


@pytest.mark.parametrize("kind", BASELINES)
def test_resumed_equals_uninterrupted(kind, tmp_path):
    more = [f"baseline.epochs={4 if kind == 'deepwalk' else 14}", "train.checkpoint_every=1"]
    numbers = iter(range(100))

    def save(state):
        save_checkpoint(tmp_path / f"{next(numbers)}.pt", state)

    whole = trainer_of(kind, more, save=save)[0].fit()
    middle = 2 if kind == "deepwalk" else 12
    resumed = trainer_of(kind, more)[0].fit(load_checkpoint(tmp_path / f"{middle}.pt"))
    np.testing.assert_array_equal(whole.embedding, resumed.embedding)
    np.testing.assert_array_equal(whole.clusters, resumed.clusters)
    assert whole.loss == resumed.loss


def test_a_checkpoint_of_another_graph_is_refused():
    states = []
    trainer, _ = trainer_of("gae", ["baseline.epochs=1"], save=states.append)
    trainer.fit()
    states[-1]["keys"] = states[-1]["keys"][1:]
    with pytest.raises(InputError, match="other data"):
        trainer_of("gae", ["baseline.epochs=1"])[0].fit(states[-1])
    with pytest.raises(InputError, match="another method"):
        trainer_of("vgae", ["baseline.epochs=1"])[0].fit(states[0])
    states[0]["model"] = {}
    with pytest.raises(InputError, match="the checkpoint is not one of this version"):
        trainer_of("gae", ["baseline.epochs=1"])[0].fit(states[0])


def test_training_ends_when_the_loss_stays_and_the_best_weights_are_embedded():
    more = ["baseline.epochs=400", "baseline.patience=1", "baseline.lr=0.05"]
    trainer, rows = trainer_of("dgi", more)
    trainer.fit()
    losses = [row["loss"] for row in rows]
    assert len(losses) < 400
    assert losses[-1] >= losses[-2]
    best = losses.index(min(losses))
    # The loss of an epoch is that of the weights before its update: with its draws, once more.
    seed_torch(trainer.config.seed, Stream.BASELINE_UPDATE, best)
    (_, terms), *_ = trainer.method.updates(best)
    assert sum(terms.values()).item() == pytest.approx(losses[best], rel=1e-6)


def test_loss_of_the_result_is_that_of_its_weights():
    trainer, rows = trainer_of("gae", ["baseline.epochs=30"])
    fit = trainer.fit()
    assert fit.loss["total"] < rows[0]["loss"]
    seed_torch(trainer.config.seed, Stream.BASELINE_UPDATE, 30)
    (_, terms), *_ = trainer.method.updates(30)
    assert sum(terms.values()).item() == pytest.approx(fit.loss["total"], rel=1e-6)


def test_weights_that_the_last_update_spoils_are_not_embedded():
    trainer, _ = trainer_of("gae", ["baseline.epochs=1", "baseline.lr=1e30"])
    with pytest.raises(NonFiniteLossError, match=r"after training.*baseline\.lr"):
        trainer.fit()


def test_an_embedding_that_is_not_finite_is_not_clustered():
    trainer, _ = trainer_of("age", ["baseline.epochs=4", "baseline.lr=1e30"])
    with pytest.raises(NonFiniteLossError, match=r"baseline\.lr"):
        trainer.fit()


def test_deepwalk_needs_edges():
    graph = Graph.from_edges(9, [], [])[0]
    config, _ = resolve_baseline(load_config(None, ["model.kind=deepwalk", "model.num_clusters=2"]))
    trainer = BaselineTrainer(graph, sp.identity(9, np.float32, "csr"), config)
    with pytest.raises(InputError, match="walks along edges"):
        trainer.fit()


def test_a_loss_that_is_not_finite_stops_training_with_the_key_to_change():
    trainer, _ = trainer_of("gae", ["baseline.lr=1e30"])
    with pytest.raises(NonFiniteLossError, match=r"epoch 2.*baseline\.lr"):
        trainer.fit()


# ---------------------------------------------------------------------------------------------
# Settings

AUTOENCODER = {
    "epochs": 200,
    "lr": 0.01,
    "weight_decay": 0.0,
    "hidden_feats": (32, 16),
    "row_norm": "none",
    "samples_per_node": 20,
}
INFOMAX = {"lr": 0.001, "weight_decay": 0.0, "hidden_feats": (512,), "row_norm": "l1"}
PAPERS = {
    "deepwalk": {"epochs": 5, "lr": 0.01, "hidden_feats": (128,), "window": 5},
    "gae": AUTOENCODER,
    "vgae": AUTOENCODER,
    "arga": AUTOENCODER | {"lr": 0.001},
    "age": {
        "epochs": 400,
        "lr": 0.001,
        "hidden_feats": (500,),
        "row_norm": "none",
        "hops": 8,
        "positive_share": 0.011,
    },
    "dgi": INFOMAX | {"epochs": 10_000, "patience": 20},
    "gic": INFOMAX | {"epochs": 2000, "patience": 50},
    "gca": {
        "epochs": 200,
        "lr": 5e-4,
        "weight_decay": 1e-5,
        "hidden_feats": (256, 128),
        "row_norm": "l1",
    },
    "gae_cg": AUTOENCODER,
    "arga_cg": AUTOENCODER | {"lr": 0.001},
}


def test_settings_are_those_of_the_papers():
    assert PAPERS.keys() == BASELINES.keys()
    for kind, expected in PAPERS.items():
        config, _ = resolve_baseline(load_config(None, [f"model.kind={kind}", "device=cpu"]))
        found = dataclasses.asdict(config.baseline)
        assert found.pop("features") == "raw"  # as in the papers
        assert {name: value for name, value in found.items() if value is not None} == expected


def test_settings_of_the_paper_stand_where_training_looks_for_them():
    config, warnings = resolve_baseline(
        load_config(None, ["model.kind=dgi", "model.num_clusters=3"])
    )
    assert config.baseline.hidden_feats == config.model.hidden_feats == (512,)
    assert config.features.row_norm == "l1"
    assert config.train.epochs == 10_000
    assert not config.structure.learnable
    assert warnings == []
    assert resolve_baseline(config) == (config, [])


def test_settings_without_effect_are_named():
    overrides = ["model.kind=gae", "baseline.hops=2", "train.lr=0.5", "loss.npsi_weight=2"]
    config, warnings = resolve_baseline(load_config(None, [*overrides, "data.noise.rate=0.1"]))
    assert config.baseline.hops is None
    assert [line.split(" has no")[0].split(" have no")[0] for line in warnings] == [
        "data.noise.rate=0.1",
        "baseline.hops",
        "model.kind=gae has a section of its own, baseline; the settings of USER in loss, train",
    ]


def test_prepared_features_are_those_of_the_section_features():
    prepared = ["model.kind=dgi", "baseline.features=prepared", "features.weighting=tf_idf"]
    config, warnings = resolve_baseline(load_config(None, prepared))
    assert (config.features.weighting, config.features.row_norm) == ("tf_idf", "none")
    assert warnings == []
    assert resolve_baseline(config) == (config, [])
    # Without the switch, the features are raw, with the norm of the paper.
    raw, warnings = resolve_baseline(load_config(None, [prepared[0], prepared[2]]))
    assert (raw.features.weighting, raw.features.row_norm) == ("none", "l1")
    assert "the settings of USER in features have no effect" in warnings[0]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            ["model.kind=gae", "baseline.row_norm=l2"],
            "baseline.row_norm has no effect with baseline.features=prepared",
        ),
        (["model.kind=deepwalk"], "baseline.features=prepared has no effect with model.kind="),
    ],
)
def test_what_has_no_effect_beside_prepared_features_is_named(more, line):
    settings = [*more, "baseline.features=prepared"]
    _, warnings = resolve_baseline(load_config(None, settings))
    assert len(warnings) == 1
    assert warnings[0].startswith(line)


def test_a_run_sees_the_prepared_features(tmp_path):
    overrides = ["model.kind=gae", *DATA, "baseline.epochs=2", "features.row_norm=l2"]
    for kind in ("raw", "prepared"):
        config = load_config(None, [*overrides, f"baseline.features={kind}"])
        norms = np.linalg.norm(read_inputs(config, lambda line: None).feat.toarray(), axis=1)
        assert np.allclose(norms, 1, atol=1e-6) == (kind == "prepared")
        train(config, tmp_path / kind, lambda line: None)
    raw, prepared = (np.load(tmp_path / kind / "embedding.npy") for kind in ("raw", "prepared"))
    assert not np.allclose(raw, prepared)


def test_a_baseline_runs_alone_and_deepwalk_on_the_cpu():
    with pytest.raises(InputError, match=r"needs model\.kind=user, got gae"):
        load_config(None, ["model.kind=gae", "model.observed_mix=0"]).check_distributed()
    with pytest.raises(InputError, match="device=cpu"):
        resolve_baseline(load_config(None, ["model.kind=deepwalk", "device=cuda"]))


def test_user_says_that_the_section_has_no_effect():
    (line,) = load_config(None, ["baseline.lr=0.1"]).inert_settings()
    assert line == "baseline has no effect with model.kind=user"


# ---------------------------------------------------------------------------------------------
# The command


def test_a_run_directory_like_that_of_user(tmp_path, capsys):
    run, config = tmp_path / "run", tmp_path / "some.yaml"
    config.write_text("model: {kind: gae}\n")
    command = ["train", str(config), *DATA, f"output_dir={run}", "baseline.epochs=5"]
    assert main([*command, "eval.floors=true"]) == 0
    result = json.loads((run / "result.json").read_text())
    assert result["epochs"] == 5
    (trained,) = (stage for stage in result["stages"] if stage["name"] == "gae")
    assert trained["epochs"] == 5
    assert set(result["loss"]) == {"total", "reconstruction"}
    assert result["num_candidate_edges"] == 0
    assert result["floors"]["smooth_kmeans"]["nmi"] > 0
    written = load_config(run / "config.yaml")
    assert written.baseline.lr == 0.01
    capsys.readouterr()
    assert main(["evaluate", str(run)]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == result["metrics"]
    assert main([*command, "eval.floors=true", "train.resume=true"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert main(["report", str(run)]) == 0


def test_a_baseline_predicts_links_and_takes_the_number_of_clusters_from_the_data(tmp_path):
    overrides = ["model.kind=gae", "baseline.epochs=60", "task=link_prediction", "device=cpu"]
    overrides += [*DATA, "model.num_clusters=auto", "model.auto_clusters.high=6"]
    result = train(load_config(None, overrides), tmp_path / "run", lambda line: None)
    assert 2 <= result["num_clusters"] <= 6
    assert result["metrics"]["auc"] > 55
    assert result["metrics"] == result["links"]["test"]["dot"]
    assert "cluster_metrics" in result


def test_labels_change_scores_alone(tmp_path, monkeypatch):
    results = []
    for shift in (0, 1):

        def shuffled(*settings, shift=shift):
            data = load_data(*settings)
            rng = np.random.default_rng(0)
            labels = rng.permutation(data.labels) if shift else data.labels
            return dataclasses.replace(data, labels=labels)

        monkeypatch.setattr("user_dgl.pipeline.inputs.load_data", shuffled)
        for kind in BASELINES:
            run = tmp_path / f"{kind}{shift}"
            more = ["model.kind=" + kind, "baseline.epochs=1", "device=cpu"]
            result = train(load_config(None, [*FEW, *more]), run, lambda line: None)
            results.append((result["metrics"], (run / "clusters.csv").read_text()))
    for (metrics, clusters), (other, same) in zip(
        results[: len(BASELINES)], results[len(BASELINES) :], strict=True
    ):
        assert clusters == same
        assert metrics != other


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gae", "dgi"])
def test_memory_is_far_from_n_by_n(kind, tmp_path):
    """A dense matrix of 50,000 nodes would take 10 GB, one of bool 2.5 GB."""
    config = tmp_path / "some.yaml"
    config.write_text(f"model: {{kind: {kind}, num_clusters: 5}}\n")
    command = [sys.executable, "-m", "user_dgl", "train", config, "baseline.epochs=2"]
    command += ["data.synthetic.num_nodes=50000", "data.synthetic.num_features=100"]
    command += [f"output_dir={tmp_path / 'run'}", "device=cpu"]
    # The width of DGI, here 64 and not 512, is memory linear in nodes.
    command += ["baseline.hidden_feats=64"] if kind == "dgi" else []
    subprocess.run(command, check=True, capture_output=True)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["peak_memory_mb"] < 1500

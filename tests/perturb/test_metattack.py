"""Meta-attack: its gradient against dense autograd, its budget, what it leaves alone."""

import csv
import json
import zipfile
from dataclasses import replace
from itertools import combinations

import bench_attack
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from paths import CONFIGS
from sklearn.preprocessing import normalize
from torch.nn.functional import cross_entropy

from user_dgl.cli import main
from user_dgl.config import AttackConfig, NoiseConfig, SyntheticConfig, load_config
from user_dgl.data import UNLABELLED, block_model, load_data
from user_dgl.errors import InputError
from user_dgl.evaluation.floors import smooth_kmeans
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.links.split import split_links
from user_dgl.perturb import Victim, metattack, perturb, random_flip, stored_graph
from user_dgl.perturb.metattack import _surrogate, attack_steps, best_pairs
from user_dgl.perturb.stored import recipe_of
from user_dgl.perturb.surrogate import PairGradient, Surrogate, _joined
from user_dgl.pipeline.train import train
from user_dgl.runtime.streams import Stream, torch_generator

EXACT = AttackConfig(form="exact", surrogate_epochs=30)
LARGE = AttackConfig(form="large", surrogate_epochs=30, steps=6, block_nodes=30)
NUM_NODES = 80


@pytest.fixture(scope="module")
def data():
    settings = SyntheticConfig(
        num_nodes=NUM_NODES, num_blocks=3, average_degree=5, mixing=0.1, num_features=40
    )
    return block_model(settings)


@pytest.fixture(scope="module")
def victim(data):
    return Victim(data.feat, data.labels)


def pairs_of(graph):
    return set(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))


# ---------------------------------------------------------------------------------------------
# The gradient


def dense_logits(adjacency, surrogate, feat, generator):
    """The logits after a training in which autograd sees every operation."""
    settings, labels, labelled = surrogate.settings, surrogate.labels, surrogate.labelled
    looped = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype)
    degree = looped.sum(1)
    smoothing = looped / (degree[:, None] * degree).sqrt()
    width, classes = settings.surrogate_feats, int(labels.max()) + 1
    shapes = (feat.shape[1], width), (width, classes)
    weights = [torch.empty(shape, dtype=adjacency.dtype) for shape in shapes]
    for weight in weights:
        torch.nn.init.xavier_uniform_(weight, generator=generator).requires_grad_()
    velocities = [torch.zeros_like(weight) for weight in weights]

    def logits():
        return smoothing @ smoothing @ feat @ weights[0] @ weights[1]

    lr, momentum = settings.surrogate_lr, settings.surrogate_momentum
    for _ in range(settings.surrogate_epochs):
        loss = cross_entropy(logits()[labelled], labels[labelled])
        grads = torch.autograd.grad(loss, weights, create_graph=True)
        velocities = [momentum * v + g for v, g in zip(velocities, grads, strict=True)]
        weights = [w - lr * v for w, v in zip(weights, velocities, strict=True)]
    return logits()


def dense_loss(adjacency, surrogate, feat, seed):
    """The attack's loss after that training: that of all nodes, whatever was trained on."""
    generator = torch.Generator().manual_seed(seed)
    logits = dense_logits(adjacency, surrogate, feat, generator)
    return cross_entropy(logits, surrogate.labels)


@pytest.mark.parametrize("share_labelled", [1.0, 0.6])
@pytest.mark.parametrize("density", [0.1, 0.9])  # sparse and dense features
def test_gradient_is_that_of_dense_autograd(share_labelled, density):
    rng = np.random.default_rng(0)
    num_nodes, num_features = 25, 12
    # The last two nodes have no edges.
    graph = Graph.from_edges(num_nodes, *rng.integers(0, num_nodes - 2, (2, 50)))[0]
    feat = sp.random(num_nodes, num_features, density, format="csr", random_state=1)
    surrogate = Surrogate(
        FeatureMatrix(feat, torch.float64),
        torch.from_numpy(rng.integers(0, 3, num_nodes)),
        torch.from_numpy(rng.random(num_nodes) < share_labelled),
        AttackConfig(surrogate_epochs=20, surrogate_feats=4, surrogate_lr=0.5),
        torch.Generator().manual_seed(3),
    )
    gradient, loss = surrogate.meta_gradient(graph)
    adjacency = torch.from_numpy(graph.to_scipy().toarray()).double().requires_grad_()
    expected_loss = dense_loss(adjacency, surrogate, torch.from_numpy(feat.toarray()), 3)
    expected_loss.backward()
    # A pair is both of its entries.
    expected = adjacency.grad + adjacency.grad.t()
    assert loss == pytest.approx(expected_loss.item(), abs=1e-12)
    u, v = torch.triu_indices(num_nodes, num_nodes, 1)
    assert expected[u, v].abs().median() > 1e-3
    everything = gradient.block(slice(None), slice(None))
    torch.testing.assert_close(everything[u, v], expected[u, v], rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(gradient.pairs(v, u), expected[u, v], rtol=1e-6, atol=1e-8)


def test_products_are_joined_to_the_rounding_of_float32():
    rng = torch.Generator().manual_seed(0)
    # 50 epochs along 6 directions that grow weaker, to far below what is kept.
    modes = torch.randn(50, 6, generator=rng, dtype=torch.float64) * 10.0 ** -torch.arange(0, 12, 2)
    left = torch.einsum("tm,mnc->tnc", modes, torch.randn(6, 9, 2, generator=rng).double())
    right = torch.randn(50, 7, 2, generator=rng).double()
    joined_left, joined_right = _joined(left, right)
    expected = torch.einsum("tnc,tfc->nf", left, right)
    assert joined_left.shape[1] < 12
    torch.testing.assert_close(joined_left @ joined_right.t(), expected, rtol=0, atol=1e-4)
    assert expected.abs().max() > 10


@pytest.mark.parametrize("most", [1, 7, 10**6])
@pytest.mark.parametrize("at_once", [2**20, 60])
def test_best_pairs_are_those_of_a_sort(most, at_once):
    rng, generator, n = np.random.default_rng(0), torch.Generator().manual_seed(0), 40
    graph = Graph.from_edges(n, *rng.integers(0, n, (2, 90)))[0]
    # In float64: which of two float32 sums is larger may depend on the order of their terms.
    left, right = torch.randn(2, n, 6, generator=generator, dtype=torch.float64)
    by_degree = torch.randn(n, generator=generator, dtype=torch.float64)
    gradient = PairGradient(left, right, by_degree)
    nodes = np.sort(rng.choice(n, 23, replace=False))
    fixed = {(u, v) for u, v in combinations(range(n), 2) if (u + v) % 5 == 0}
    fixed_keys = np.array(sorted(u * n + v for u, v in fixed))
    keys, gain = best_pairs(gradient, graph, nodes, fixed_keys, most, at_once)
    edges, dense = pairs_of(graph), gradient.block(slice(None), slice(None)).numpy()
    ranked = sorted(
        (dense[pair] if pair in edges else -dense[pair], pair)
        for pair in combinations(nodes.tolist(), 2)
        if pair not in fixed
    )
    assert [divmod(key, n) for key in keys.tolist()] == [pair for _, pair in ranked[:most]]
    np.testing.assert_allclose(gain, [-loss for loss, _ in ranked[:most]], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------------------------------
# The attack


@pytest.mark.parametrize("settings", [EXACT, LARGE], ids=["exact", "large"])
def test_budget_is_kept_and_seeds_repeat(data, victim, settings):
    clean = pairs_of(data.graph)
    attacks = [metattack(data.graph, 0.1, seed, settings, victim) for seed in (4, 4, 5)]
    for attacked in attacks:
        after = pairs_of(attacked.graph)
        assert len(clean ^ after) == round(0.1 * data.graph.num_edges)
        assert attacked.num_added == len(after - clean)
        assert attacked.num_removed == len(clean - after)
        assert all(u < v for u, v in after)
        assert len(after) == attacked.graph.num_edges
        # No node loses its last edge.
        assert (attacked.graph.degree[data.graph.degree > 0] > 0).all()
    assert pairs_of(attacks[0].graph) == pairs_of(attacks[1].graph) != pairs_of(attacks[2].graph)
    assert attacks[0].notes == attacks[1].notes
    assert pairs_of(data.graph) == clean


def test_large_form_with_all_pairs_and_one_flip_at_a_time_is_exact(data, victim):
    all_pairs = replace(LARGE, steps=10**6, block_nodes=NUM_NODES)
    exact, large = (
        metattack(data.graph, 0.1, 0, settings, victim) for settings in (EXACT, all_pairs)
    )
    np.testing.assert_array_equal(exact.graph.keys, large.graph.keys)


def test_exact_attacks_of_lower_rates_are_beginnings(data, victim):
    steps = list(attack_steps(data.graph, 12, 0, EXACT, victim))
    assert [flips for _, _, flips in steps] == list(range(1, 13))
    rate = 5 / data.graph.num_edges
    np.testing.assert_array_equal(
        steps[4][0].keys, metattack(data.graph, rate, 0, EXACT, victim).graph.keys
    )


@pytest.mark.parametrize("settings", [EXACT, LARGE, replace(LARGE, block_nodes=NUM_NODES)])
def test_gains_are_multiplied_by_the_weights_of_pairs(data, victim, settings):
    plain, ones, tenth = (
        list(attack_steps(data.graph, 12, 0, settings, victim, weigh=weigh))[-1][0]
        for weigh in (
            None,
            lambda graph, keys: np.ones(len(keys)),
            lambda graph, keys: np.where(keys % 10 == 0, 1, 1e-6),
        )
    )
    np.testing.assert_array_equal(plain.keys, ones.keys)
    flips = np.setxor1d(tenth.keys, data.graph.keys)
    assert len(flips) == 12
    assert (flips % 10 == 0).all()


def test_each_flip_of_the_exact_form_is_the_best_one(data, victim):
    graph, _, _ = next(attack_steps(data.graph, 1, 7, EXACT, victim))
    surrogate = Surrogate(
        FeatureMatrix(normalize(data.feat)),
        torch.from_numpy(data.labels),
        torch.ones(NUM_NODES, dtype=torch.bool),
        EXACT,
        torch_generator(7, Stream.SURROGATE),
    )
    gain = surrogate.meta_gradient(data.graph)[0].block(slice(None), slice(None)).numpy()
    gain *= 1 - 2 * data.graph.to_scipy().toarray()
    (flipped,) = pairs_of(graph) ^ pairs_of(data.graph)
    degree = data.graph.degree
    free = [
        (u, v)
        for u, v in combinations(range(NUM_NODES), 2)
        if (u, v) not in pairs_of(data.graph) or min(degree[u], degree[v]) > 1
    ]
    assert gain[flipped] == pytest.approx(max(gain[pair] for pair in free), rel=1e-4)


@pytest.mark.parametrize("form", ["exact", "large"])
def test_attack_hurts_more_than_random_flips(form):
    settings = SyntheticConfig(
        num_nodes=120, num_blocks=3, average_degree=6, mixing=0.05, topic_share=0.15
    )
    data = block_model(settings)
    attack = AttackConfig(form=form, steps=15, block_nodes=60)

    def nmi(graph):
        clusters = smooth_kmeans(data.feat, graph, 3, 0)
        return clustering_metrics(data.labels, clusters)["nmi"]

    attacked = metattack(data.graph, 0.2, 0, attack, Victim(data.feat, data.labels)).graph
    flipped = [nmi(random_flip(data.graph, 0.2, seed).graph) for seed in range(3)]
    assert nmi(attacked) < min(flipped) - 10


@pytest.mark.parametrize("settings", [EXACT, LARGE], ids=["exact", "large"])
def test_held_out_pairs_are_not_touched(data, victim, settings):
    config = load_config(None, ["links.test_share=0.2"])
    split = split_links(data.graph, config.links, 0)
    held_out = split.held_out_keys
    noise = NoiseConfig(kind="metattack", rate=0.3, attack=settings)
    attacked = perturb(split.training, noise, 0, None, held_out, victim)
    changed = np.setxor1d(split.training.keys, attacked.graph.keys)
    assert len(changed) == round(0.3 * split.training.num_edges)
    assert not np.isin(changed, held_out).any()
    # Without that it does touch some, in one of a few attacks.
    free = [perturb(split.training, noise, seed, None, None, victim) for seed in range(4)]
    changed = [np.setxor1d(split.training.keys, one.graph.keys) for one in free]
    assert np.isin(np.concatenate(changed), held_out).any()


def test_nodes_without_labels_are_predicted(data):
    labels = np.where(np.arange(NUM_NODES) % 2, data.labels, UNLABELLED)
    one, same = (
        metattack(data.graph, 0.05, 0, EXACT, Victim(data.feat, labels)).graph for _ in range(2)
    )
    np.testing.assert_array_equal(one.keys, same.keys)
    # Classes are numbered anew where some are missing.
    gaps = Victim(data.feat, np.where(labels == UNLABELLED, UNLABELLED, 2 * labels + 1))
    np.testing.assert_array_equal(metattack(data.graph, 0.05, 0, EXACT, gaps).graph.keys, one.keys)


def test_classes_of_nodes_without_a_label_are_those_of_a_surrogate_trained_on_the_others(data):
    rng = np.random.default_rng(0)
    known = rng.random(NUM_NODES) < 0.4
    labels = np.where(known, data.labels, UNLABELLED)
    surrogate = _surrogate(data.graph, EXACT, Victim(data.feat, labels), seed=5)
    assert torch.equal(surrogate.labelled, torch.from_numpy(known))
    np.testing.assert_array_equal(surrogate.labels[known], data.labels[known])
    adjacency = torch.from_numpy(data.graph.to_scipy().toarray())
    feat = torch.from_numpy(normalize(data.feat).toarray().astype(np.float32))
    logits = dense_logits(adjacency, surrogate, feat, torch_generator(5, Stream.SURROGATE))
    np.testing.assert_array_equal(surrogate.labels[~known], logits.argmax(1)[~known])
    # They are mostly right, and not one class for all.
    right = surrogate.labels.numpy()[~known] == data.labels[~known]
    assert right.mean() > 0.8
    assert len(np.unique(surrogate.labels[~known])) == 3


def test_data_without_features(data):
    attacked = metattack(data.graph, 0.05, 0, EXACT, Victim(None, data.labels))
    assert attacked.num_added + attacked.num_removed == round(0.05 * data.graph.num_edges)


@pytest.mark.parametrize(("form", "told"), [("auto", 1), ("large", 0)])
def test_settings_of_the_large_form_that_auto_does_not_take_are_named(data, victim, form, told):
    settings = replace(EXACT, form=form, steps=7)
    _, *named = metattack(data.graph, 0.02, 0, settings, victim).notes
    assert len(named) == told
    assert all(note.startswith("data.noise.attack.steps has no effect") for note in named)


def test_nothing_to_flip(data):
    assert metattack(data.graph, 0.0, 0, EXACT, Victim()).graph is data.graph


@pytest.mark.parametrize(
    ("settings", "labels", "rate", "message"),
    [
        ({}, None, 0.1, "labels of 0 classes"),
        ({}, np.zeros(NUM_NODES, int), 0.1, "labels of 1 classes"),
        ({}, None, 1e4, "lower the rate"),
        (
            {"surrogate_lr": 1e6},
            np.arange(NUM_NODES) % 3,
            0.1,
            r"lower .*\.surrogate_lr",
        ),
        (
            {"surrogate_epochs": 10**9},
            np.arange(NUM_NODES) % 3,
            0.1,
            r"lower .*\.surrogate_epochs",
        ),
    ],
)
def test_refused(data, settings, labels, rate, message):
    with pytest.raises(InputError, match=message):
        metattack(data.graph, rate, 0, replace(EXACT, **settings), Victim(data.feat, labels))


def test_no_pair_left_that_may_flip():
    # A perfect matching: every edge is the last one of its ends, and the rest is held out.
    graph = Graph.from_edges(4, [0, 2], [1, 3])[0]
    held_out = np.array([0 * 4 + 2, 0 * 4 + 3, 1 * 4 + 2])
    victim = Victim(sp.identity(4, np.float32, "csr"), np.array([0, 0, 1, 1]))
    for settings in (EXACT, replace(LARGE, block_nodes=2)):
        attacked = metattack(graph, 0.5, 0, settings, victim, held_out)
        assert pairs_of(attacked.graph) == {(0, 1), (2, 3), (1, 3)}
        with pytest.raises(InputError, match="after 1 flips no pair is left"):
            metattack(graph, 1.0, 0, settings, victim, np.append(held_out, 0 * 4 + 1))


# ---------------------------------------------------------------------------------------------
# Commands

CONFIG = (
    "data.synthetic.num_nodes=100",
    "model.num_clusters=5",
    "model.hidden_feats=[8]",
    "train.epochs=3",
    "train.restarts=1",
)
ATTACK = (
    "data.noise.kind=metattack",
    "data.noise.rate=0.05",
    "data.noise.attack.surrogate_epochs=20",
)


@pytest.fixture
def quickstart():
    return str(CONFIGS / "quickstart.yaml")


def test_attack_is_written_with_its_recipe_and_trained_on(quickstart, tmp_path, capsys):
    file = tmp_path / "attacked.npz"
    assert main(["perturb", quickstart, *CONFIG, *ATTACK, "seed=3", "--out", str(file)]) == 0
    assert "flips, form exact" in capsys.readouterr().out
    again = tmp_path / "again.npz"
    assert main(["perturb", quickstart, *CONFIG, *ATTACK, "seed=3", "--out", str(again)]) == 0
    assert file.read_bytes() == again.read_bytes()
    runs = {"direct": ATTACK, "stored": ("data.noise.kind=file", f"data.noise.file={file}")}
    results, inputs = {}, {}
    for name, noise in runs.items():
        out = tmp_path / name
        assert main(["train", quickstart, *CONFIG, *noise, "seed=3", f"output_dir={out}"]) == 0
        results[name] = json.loads((out / "result.json").read_text())
        inputs[name] = (out / "learned_graph.npz").read_bytes()
    direct, stored = results["direct"], results["stored"]
    assert inputs["direct"] == inputs["stored"]
    assert direct["metrics"] == stored["metrics"]
    assert direct["noise"]["edges_added"] == stored["noise"]["edges_added"] > 0
    noise = direct["noise"]
    assert (noise["kind"], noise["rate"], noise["seed"]) == ("metattack", 0.05, 3)
    (note,) = (note for note in stored["notes"] if "made by" in note)
    recipe = json.loads(note.partition("made by ")[2])
    assert (recipe["kind"], recipe["rate"], recipe["seed"]) == ("metattack", 0.05, 3)
    assert (recipe["attack"]["form"], recipe["attack"]["surrogate_epochs"]) == ("exact", 20)
    assert recipe["user_dgl"] == direct["versions"]["user_dgl"]
    assert sp.load_npz(file).nnz == 2 * direct["num_observed_edges"]


def test_bench_names_harm_and_flips_and_keeps_the_graph(quickstart, tmp_path, capsys):
    command = [quickstart, *CONFIG, "data.noise.attack.surrogate_epochs=20"]
    command += ["--form", "exact", "--rates", "2", "5", "--victims", "1", "--out", str(tmp_path)]
    assert bench_attack.main(command) == 0
    clean = load_data(load_config(quickstart, list(CONFIG)).data).graph
    num_edges = clean.num_edges
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["rate"] for row in rows] == ["2", "5"]
    for row in rows:
        file = tmp_path / f"synthetic_exact_{row['rate']}_0.npz"
        assert stored_graph(clean, file).num_added  # it names the clean graph, and is taken
        graph = sp.load_npz(file)
        added, removed = int(row["added"]), int(row["flips"]) - int(row["added"])
        assert int(row["flips"]) == round(float(row["rate"]) / 100 * num_edges)
        assert graph.nnz == 2 * (num_edges + added - removed)
        assert 0 <= float(row["gae_nmi"]) <= 100


def test_the_victim_of_the_bench_is_the_baseline_of_the_tables(quickstart, capsys, tmp_path):
    """`model.kind=gae` of `user-dgl train`, with its settings and no others."""
    for more in ([], ["baseline.row_norm=l2"]):
        settings = [*CONFIG, "baseline.epochs=20", *more]
        command = [quickstart, *settings, "--form", "none", "--victims", "1"]
        assert bench_attack.main(command) == 0
        (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
        clean = ["data.noise.kind=none", "model.kind=gae"]
        config = load_config(quickstart, [*settings, *clean])
        trained = train(config, tmp_path / f"run{len(more)}", lambda line: None)
        assert float(row["gae_nmi"]) == pytest.approx(trained["metrics"]["nmi"], rel=1e-3)


def test_recipes_name_what_had_a_part():
    random = ["data.noise.kind=random_flip", "data.noise.rate=0.5", "seed=4"]
    graph = Graph.from_edges(10, [0, 1], [1, 2])[0]
    recipe = recipe_of(load_config(None, random), graph)
    assert len(recipe.pop("graph")) == 16
    del recipe["user_dgl"]
    assert recipe == {"kind": "random_flip", "rate": 0.5, "seed": 4}
    recipe = recipe_of(load_config(None, [*random, "task=link_prediction"]), graph)
    assert (recipe["links"]["seed"], recipe["links"]["test_share"]) == (4, 0.1)
    attack = ["data.noise.kind=metattack", "data.noise.seed=1", "seed=4"]
    for num_nodes, form in ((5000, "exact"), (5001, "large")):
        recipe = recipe_of(load_config(None, attack), Graph.from_edges(num_nodes, [0], [1])[0])
        assert (recipe["attack"]["form"], recipe["seed"]) == (form, 1)
        assert ("steps" in recipe["attack"]) == (form == "large")


def test_damaged_recipe(tmp_path):
    graph = Graph.from_edges(3, [0], [1])[0]
    file = tmp_path / "graph.npz"
    sp.save_npz(file, graph.to_scipy())
    assert stored_graph(graph, file).notes == ()
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("recipe.json", "{")
    with pytest.raises(InputError, match=r"recipe\.json: damaged"):
        stored_graph(graph, file)


def test_data_without_labels_are_refused(tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    edges.write_text("0,1\n1,2\n2,3\n3,4\n4,0\n")
    out = tmp_path / "run"
    arguments = ["train", "--edges", str(edges), "--clusters", "2", *ATTACK]
    assert main([*arguments, "data.noise.rate=0.5", f"output_dir={out}"]) == 2
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1
    assert "metattack: the data have labels of 0 classes" in error[0]
    assert not out.exists()

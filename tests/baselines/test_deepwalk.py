"""DeepWalk beside a dense oracle, and the walks that it alone makes."""

import random

import numpy as np
import pytest
import torch
from dense_baselines import (
    Adam,
    adjacency_of,
    assert_terms,
    assert_weights,
    tiny_features,
    tiny_graph,
    tiny_trainer,
    train_epochs,
    weights_of,
)
from torch.nn.functional import logsigmoid

from user_dgl.cli import main

LENGTH, WINDOW, NEGATIVES = 40, 5, 5


@pytest.fixture
def walked(monkeypatch):
    """A trainer, the walks of each of its updates, and the order that gives the negatives."""
    trainer, walks, orders = tiny_trainer("deepwalk", "baseline.hidden_feats=[6]"), [], []
    module, shuffle = trainer.method.walks, random.shuffle
    sample = module.sample

    def note_walks(starts):
        walks.append(sample(starts))
        return walks[-1]

    def note_order(positions):
        shuffle(positions)
        orders.append(list(positions))

    monkeypatch.setattr(module, "sample", note_walks)
    monkeypatch.setattr(random, "shuffle", note_order)
    return trainer, walks, orders


def skip_gram(node, context, walks, order):
    """Skip-gram with negative sampling (Mikolov et al., 2013) on windows of walks (B, 40).

    Each position predicts the nodes near it. ``order`` has the position, among those of all walks,
    of the negative node of each pair.
    """
    places = walks.flatten()
    pairs = [
        (start + other, start + place)
        for start in range(0, len(places), LENGTH)
        for place in range(LENGTH)
        for other in range(max(0, place - WINDOW), min(LENGTH, place + WINDOW + 1))
        if other != place
    ]
    center, near = places[torch.tensor(pairs)].t()
    positive = logsigmoid((node[center] * context[near]).sum(1)).mean()
    other = places[torch.tensor(order[: len(pairs)])]
    negative = logsigmoid(-(node[near] * context[other]).sum(1)).mean()
    return -(positive + NEGATIVES * negative)


def test_loss_and_steps_are_those_of_the_paper(walked):
    trainer, walks, orders = walked
    weights = weights_of(trainer.method.walks)
    assert list(weights) == ["node_embed.weight", "context_embed.weight"]
    rows = train_epochs(trainer, 3)
    adam, expected = Adam(weights.values(), 0.02, early_epsilon=True), []
    for each, order in zip(walks, orders, strict=True):
        expected.append({"skip_gram": adam.step(skip_gram(*weights.values(), each, order))})
    assert_terms(rows, expected)
    assert_weights(trainer.method.walks, weights)
    torch.testing.assert_close(trainer.method.embed(), weights["node_embed.weight"])


def test_each_node_with_neighbours_starts_one_walk_along_edges_in_an_epoch(walked):
    trainer, walks, _ = walked
    train_epochs(trainer, 2)
    degree = adjacency_of(trainer.graph).sum(1)
    for each in walks:
        assert each.shape == (int((degree > 0).sum()), LENGTH)
        assert sorted(each[:, 0].tolist()) == torch.nonzero(degree).squeeze(1).tolist()
        assert (adjacency_of(trainer.graph)[each[:, :-1], each[:, 1:]] == 1).all()
    assert walks[0].tolist() != walks[1].tolist()


def test_features_are_not_read_and_isolated_nodes_stay():
    found = []
    for seed in (12, 13):
        trainer = tiny_trainer("deepwalk", graph=tiny_graph(), feat=tiny_features(seed=seed))
        before = trainer.method.embed().detach().clone()
        train_epochs(trainer, 2)
        found.append(trainer.method.embed().detach())
    assert torch.equal(*found)
    moved = (found[0] != before).any(1).numpy()
    np.testing.assert_array_equal(moved, adjacency_of(tiny_graph()).sum(1).numpy() > 0)


def test_pythons_generator_is_left_as_it_was():
    trainer = tiny_trainer("deepwalk")
    random.seed(3)
    expected = random.random()
    random.seed(3)
    train_epochs(trainer, 1)
    assert random.random() == expected


def test_weights_without_effect_are_said(tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target,weight\na,b,100\nb,c,1\nc,d,2\n")
    words = ["train", "--edges", str(edges), "--clusters", "2", "model.kind=deepwalk"]
    settings = ["baseline.epochs=1", f"output_dir={tmp_path / 'run'}", "--quiet"]
    assert main([*words, *settings]) == 0
    assert "deepwalk takes all edges alike: weights have no effect" in capsys.readouterr().out

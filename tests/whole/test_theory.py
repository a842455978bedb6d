"""What the paper proves of structural entropy and of the rank of the ideal graph."""

import math

import numpy as np
import pytest
import torch

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.graph import Graph
from user_dgl.losses.entropy import npsi, partition_sums
from user_dgl.perturb import random_flip
from user_dgl.structure.learned_adjacency import LearnedAdjacency
from user_dgl.training.hooks import Hooks
from user_dgl.training.trainer import Trainer


def _groups(num_nodes, num_groups):
    return np.arange(num_nodes) % num_groups


@pytest.mark.parametrize("num_groups", [2, 3, 5])
def test_rank_of_the_innocuous_graph_is_the_number_of_groups(num_groups):
    """Definition 1: A_ij = 1 where i and j are of one group, i = j included, so A = Y Y^T."""
    assignment = np.eye(num_groups)[_groups(20, num_groups)]
    with_loops = assignment @ assignment.T
    assert np.linalg.matrix_rank(with_loops) == num_groups
    # Without its self-loops the graph is simple, and its rank says nothing of the groups.
    simple = with_loops - np.eye(20)
    assert np.linalg.matrix_rank(simple) == 20


@pytest.mark.parametrize("num_groups", [2, 3, 4, 5])
def test_least_npsi_has_rank_of_the_number_of_groups_or_more(num_groups):
    """Over all non-negative symmetric A' with Y fixed, NPSI falls to -log2 K; A' then has rank K
    or more (the paper's theorem on the rank of the graph of least NPSI)."""
    num_nodes = 6 * num_groups
    groups = torch.from_numpy(np.random.default_rng(0).permutation(_groups(num_nodes, num_groups)))
    assignment = torch.nn.functional.one_hot(groups).double()
    graph, _ = Graph.from_edges(num_nodes, *np.triu_indices(num_nodes, 1))
    generator = torch.Generator().manual_seed(0)
    weight = 0.5 + torch.rand(1, graph.num_edges, generator=generator, dtype=torch.float64)
    structure = LearnedAdjacency(graph, torch.ones(graph.num_edges, dtype=torch.bool), weight)
    optimizer = torch.optim.Adam(structure.parameters(), lr=0.2)

    def entropy():
        return npsi(partition_sums(graph, structure()[0], assignment, "csr"))

    assert entropy() > -math.log2(num_groups) + 0.1
    for _ in range(1000):
        optimizer.zero_grad()
        entropy().backward()
        optimizer.step()
    assert entropy().item() == pytest.approx(-math.log2(num_groups), abs=1e-3)
    adjacency = graph.to_scipy(structure()[0].detach()).toarray()
    assert (adjacency >= 0).all()
    np.testing.assert_array_equal(adjacency, adjacency.T)
    singular = np.linalg.svd(adjacency, compute_uv=False)
    assert (singular > 1e-3 * singular[0]).sum() >= num_groups


def test_training_lowers_npsi_and_the_weight_of_noise():
    data = block_model(SyntheticConfig(num_nodes=200, num_blocks=4, average_degree=8.0, mixing=0.0))
    noisy = random_flip(data.graph, 0.5, seed=0)
    config = load_config(
        None,
        [
            "model.num_clusters=4",
            "model.hidden_feats=[16]",
            "loss.observed_edge_weight=0.5",
            "model.dropout=0",
            "model.logit_dropout=0",
            "train.epochs=150",
            "train.lr=0.05",
        ],
    )
    rows = []
    fit = Trainer(noisy.graph, data.feat, config, Hooks(record=rows.append)).fit()
    entropy = np.array([row["npsi"] for row in rows])
    assert entropy[-10:].mean() < entropy[:10].mean() - 0.3
    weight, added = fit.weight[fit.observed], noisy.added.numpy()
    assert weight[added].mean() < weight[~added].mean() - 0.1

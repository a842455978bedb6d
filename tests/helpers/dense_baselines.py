"""Baselines on tiny graphs in double precision, and the parts that their dense oracles share.

An oracle computes the loss and the updates of a method from the equations of its paper, with dense
matrices and without the code of the package. It takes the initial weights from the package, and it
repeats the draws of an epoch from their seed (`draws_of`).
"""

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn.functional import logsigmoid

from user_dgl.baselines import resolve_baseline
from user_dgl.baselines.trainer import BaselineTrainer
from user_dgl.config import load_config
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.pairs import SampledPairs
from user_dgl.runtime.streams import Stream, seed_torch

# Widths and rates that make a few steps of a tiny model visible in all weights.
TINY = ("model.num_clusters=3", "baseline.lr=0.02", "seed=5")


def tiny_graph(num_nodes=12, num_entries=40, seed=1) -> Graph:
    """A random graph of many degrees; its last two nodes have no edges."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, num_nodes - 1)
    ends = rng.choice(num_nodes - 2, (2, num_entries), p=weight / weight.sum())
    return Graph.from_edges(num_nodes, *ends)[0]


def tiny_features(num_nodes=12, num_columns=7, seed=12) -> sp.csr_matrix:
    """Random sparse rows; the last node has no features."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((num_nodes, num_columns)) < 0.3) * rng.uniform(0.5, 2, num_columns)
    dense[-1] = 0
    return sp.csr_matrix(dense)


def tiny_trainer(kind, *overrides, graph=None, feat=None) -> BaselineTrainer:
    """A trainer of a baseline in double precision, ready for its first epoch."""
    graph = tiny_graph() if graph is None else graph
    feat = tiny_features() if feat is None else feat
    config, _ = resolve_baseline(load_config(None, [f"model.kind={kind}", *TINY, *overrides]))
    trainer = BaselineTrainer(graph, feat, config)
    trainer.features = FeatureMatrix(feat, torch.float64)
    seed_torch(config.seed, Stream.NETWORK)
    trainer.build()
    trainer.method.double()
    return trainer


def train_epochs(trainer, count=2) -> list[dict[str, float]]:
    """Train some epochs; returns the terms of the loss of each epoch."""
    rows = []
    for _ in range(count):
        rows.append(trainer.step().terms)
        trainer.progress.epoch += 1
    return rows


def draws_of(trainer, epoch) -> None:
    """Seed torch so that an oracle draws what the method draws in an epoch."""
    seed_torch(trainer.config.seed, Stream.BASELINE_UPDATE, epoch)


def weights_of(module) -> dict[str, torch.Tensor]:
    """Copies of the weights of a module by name, as leaves that have gradients."""
    return {n: each.detach().clone().requires_grad_() for n, each in module.named_parameters()}


def assert_weights(module, expected: dict[str, torch.Tensor]) -> None:
    """Compare all weights of a module with those of an oracle."""
    found = dict(module.named_parameters())
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=1e-7, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}"
        )


def assert_terms(rows: list[dict[str, float]], expected: list[dict[str, float]]) -> None:
    """Compare the terms of each epoch, and their sum, with those of an oracle."""
    assert len(rows) == len(expected)
    for row, terms in zip(rows, expected, strict=True):
        terms = terms | {"total": sum(terms.values())}
        assert row.keys() == terms.keys()
        for name, value in terms.items():
            np.testing.assert_allclose(row[name], value, rtol=1e-9, err_msg=name)


class Adam:
    """Adam (Kingma and Ba, 2015, Algorithm 1), with an L2 penalty in the gradient.

    With ``early_epsilon`` the epsilon is added before the correction of the bias, the form at the
    end of the paper's Section 2, which ``torch.optim.SparseAdam`` has.
    """

    def __init__(self, weights, lr, weight_decay=0.0, *, early_epsilon=False):
        self.weights, self.lr, self.weight_decay, self.time = list(weights), lr, weight_decay, 0
        self.early_epsilon = early_epsilon
        self.mean = [torch.zeros_like(each) for each in self.weights]
        self.square = [torch.zeros_like(each) for each in self.weights]

    def step(self, loss: torch.Tensor) -> float:
        """Make one step down the gradient of a loss; returns the loss before the step."""
        grads = torch.autograd.grad(loss, self.weights)
        self.time += 1
        with torch.no_grad():
            for i, (weight, grad) in enumerate(zip(self.weights, grads, strict=True)):
                grad = grad + self.weight_decay * weight
                self.mean[i] = 0.9 * self.mean[i] + 0.1 * grad
                self.square[i] = 0.999 * self.square[i] + 0.001 * grad**2
                mean = self.mean[i] / (1 - 0.9**self.time)
                correction = (1 - 0.999**self.time) ** 0.5
                epsilon = 1e-8 / correction if self.early_epsilon else 1e-8
                weight -= self.lr * mean / (self.square[i].sqrt() / correction + epsilon)
        return loss.item()


def adjacency_of(graph: Graph, weight=None) -> torch.Tensor:
    """A (N, N), symmetric; the weights (E,) are 1 unless they are given."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    matrix[graph.src.long(), graph.dst.long()] = 1.0 if weight is None else weight.double()
    return matrix + matrix.t()


def normalised(adjacency: torch.Tensor) -> torch.Tensor:
    """S = D^-1/2 (A + I) D^-1/2 (N, N) (Kipf and Welling, 2017)."""
    with_loops = adjacency + torch.eye(len(adjacency), dtype=torch.float64)
    scale = with_loops.sum(1) ** -0.5
    return scale[:, None] * with_loops * scale


def autoencoder(smooth: torch.Tensor, feat: torch.Tensor, weights) -> torch.Tensor:
    """Z = S ReLU(S X W0) W1 (Kipf and Welling, 2016)."""
    first, second = weights
    return smooth @ torch.relu(smooth @ feat @ first) @ second


def reconstruction(hidden, adjacency, target) -> torch.Tensor:
    """Weighted cross-entropy of sigma(Z Z^T) on all N^2 pairs, as in Kipf and Welling's code.

    Edges and loops have the target (N, N) and a weight by which edges count as much as non-edges.
    """
    pairs, edges = len(hidden) ** 2, adjacency.sum()
    score = hidden @ hidden.t()
    edge = (pairs - edges) / edges * target * logsigmoid(score)
    no_edge = (1 - target) * logsigmoid(-score)
    return pairs / (2 * (pairs - edges)) * -(edge + no_edge).mean()


def all_pairs(monkeypatch) -> list[int]:
    """Let the autoencoders see each pair once, so that their loss is exact.

    Returns a list to which each call adds the number of pairs that were asked for.
    """
    asked = []

    def each_pair_once(graph, num_samples, generator=None):
        asked.append(num_samples)
        low, high = torch.triu_indices(graph.num_nodes, graph.num_nodes, 1)
        return SampledPairs(low, high, adjacency_of(graph)[low, high] > 0)

    monkeypatch.setattr("user_dgl.baselines.gae.sample_pairs", each_pair_once)
    return asked


def two_cliques(size=6) -> tuple[Graph, sp.csr_matrix]:
    """Two cliques that one edge joins, and a feature of its own for each node."""
    ends = [(i, j) for i in range(size) for j in range(i)]
    ends += [(i + size, j + size) for i, j in ends] + [(0, size)]
    graph, _ = Graph.from_edges(2 * size, *np.transpose(ends))
    return graph, sp.identity(2 * size, format="csr")


class AdversarialGame:
    """ARGA (Pan et al., 2018), dense: five reconstructions, then each player's update.

    Each of the three losses has an Adam of its own.
    """

    def __init__(self, encoder, discriminator, lr):
        self.encoder, self.discriminator = list(encoder), list(discriminator)
        self.reconstructs, self.generates = Adam(self.encoder, lr), Adam(self.encoder, lr)
        self.discriminates = Adam(self.discriminator, lr)

    def belief(self, rows: torch.Tensor) -> torch.Tensor:
        """Logits of the discriminator: two hidden layers with ReLU, and one output."""
        w0, b0, w1, b1, w2, b2 = self.discriminator
        hidden = torch.relu(torch.relu(rows @ w0.t() + b0) @ w1.t() + b1)
        return (hidden @ w2.t() + b2).squeeze(1)

    def epoch(self, smooth, feat, adjacency, target) -> dict[str, float]:
        """Train one epoch; returns the terms. The reconstruction is the mean of the five."""

        def embed():
            return autoencoder(smooth, feat, self.encoder)

        losses = [
            self.reconstructs.step(reconstruction(embed(), adjacency, target)) for _ in range(5)
        ]
        hidden = embed().detach()
        prior = torch.randn(hidden.shape).double()
        # max_D log D(a) + log(1 - D(z)), a from the prior; then the encoder raises log D(z).
        told_apart = (
            -logsigmoid(self.belief(prior)).mean() - logsigmoid(-self.belief(hidden)).mean()
        )
        discriminator = self.discriminates.step(told_apart)
        generator = self.generates.step(-logsigmoid(self.belief(embed())).mean())
        return {
            "reconstruction": float(np.mean(losses)),
            "discriminator": discriminator,
            "generator": generator,
        }


def graph_infomax(smooth, feat, weights):
    """DGI (Velickovic et al., 2019), dense; draws the order of the corrupted rows.

    Returns the loss, the embeddings H (N, d) = PReLU(S X W + b), and those of the corrupted graph.
    """
    weight, bias, slope, bilinear, shift = weights

    def embed(rows):
        out = smooth @ rows @ weight + bias
        return torch.where(out > 0, out, slope * out)

    hidden, corrupted = embed(feat), embed(feat[torch.randperm(len(feat))])
    summary = torch.sigmoid(hidden.mean(0))
    real, fake = (rows @ bilinear @ summary + shift for rows in (hidden, corrupted))
    loss = -(logsigmoid(real).sum() + logsigmoid(-fake).sum()) / (2 * len(feat))
    return loss, hidden, corrupted

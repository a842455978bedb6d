r"""Surrogate of the meta-attack and its meta-gradient with respect to every pair of nodes.

The attack does not know the model that it shall harm. It attacks a surrogate instead: a linear GCN
with two layers, :math:`Z = S^2 X W_1 W_2` with :math:`S = D^{-1/2} (A + I) D^{-1/2}`, trained by
gradient descent with momentum. The attack's loss after the last epoch depends on A through every
epoch. Its gradient in A is the meta-gradient of Zuegner and Guennemann (2019). It is computed here
without autograd, backwards through the whole training.

The training depends on A only through :math:`M = S^2 X`, and M occurs only in products with few
columns. So each epoch adds two terms of rank C to the gradient in M (N, F), and this gradient is
stored as :math:`L R^T`. The gradient in all N^2 pairs is stored as products of blocks with few
columns, which are multiplied only for the pairs that are needed.
"""

from dataclasses import dataclass

import scipy.sparse as sp
import torch
from torch.nn.functional import cross_entropy, one_hot

from user_dgl.config import AttackConfig
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.csr_engine import csr_product
from user_dgl.graph.propagation import Propagation

# The terms of different epochs are similar. Of their principal directions over the epochs, those
# whose strength is less than this share of the strongest are below the rounding of float32.
_NEGLIGIBLE = 1e-6
# Number of directions above this share, as measured with 100 epochs and rounded up.
_MODES = 40
# Number of values that are processed at a time.
_BLOCK = 2**16
# Memory in bytes of the pairs that are compared at a time and of small objects.
_COMPARED = 60e6


@dataclass(frozen=True, eq=False)
class PairGradient:
    r"""Gradient of the attack's loss in the weight of every pair, stored as factors.

    .. math:: g_{uv} = \langle l_u, r_v \rangle + \langle r_u, l_v \rangle + \delta_u + \delta_v

    Attributes
    ----------
    left, right : Tensor (N, w)
        Rows :math:`l_u` and :math:`r_u`.
    by_degree : Tensor (N,)
        :math:`\delta`, the effect of the pair on the degrees in the normalisation.
    """

    left: torch.Tensor
    right: torch.Tensor
    by_degree: torch.Tensor

    def block(self, rows: torch.Tensor | slice, columns: torch.Tensor | slice) -> torch.Tensor:
        """Gradient for all pairs of a node of ``rows`` and a node of ``columns``, as a matrix."""
        gradient = self.by_degree[rows, None] + self.by_degree[columns]
        gradient.addmm_(self.left[rows], self.right[columns].t())
        return gradient.addmm_(self.right[rows], self.left[columns].t())

    def pairs(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Gradient for each of the pairs (u_i, v_i), (M,)."""
        gradient = self.by_degree[u] + self.by_degree[v]
        size = max(_BLOCK // self.left.shape[1], 1)
        for part in (slice(at, at + size) for at in range(0, len(u), size)):
            from_, to = u[part], v[part]
            gradient[part] += (self.left[from_] * self.right[to]).sum(1)
            gradient[part] += (self.right[from_] * self.left[to]).sum(1)
        return gradient


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The linear GCN: its training data and settings.

    Attributes
    ----------
    feat : FeatureMatrix (N, F)
    labels : int64 Tensor (N,)
        Class of each node, 0..C-1. The attack's loss uses the classes of all nodes.
    labelled : bool Tensor (N,)
        Nodes whose classes the surrogate is trained on.
    settings : AttackConfig
    generator : torch.Generator
        Generator of the first weights, which are drawn again for each training.
    """

    feat: FeatureMatrix
    labels: torch.Tensor
    labelled: torch.Tensor
    settings: AttackConfig
    generator: torch.Generator

    @torch.no_grad()
    def predict(self, graph: Graph) -> torch.Tensor:
        """Train on the labelled nodes of a graph and predict the classes (N,) of all nodes."""
        training = _Training(self, _propagation(graph, self.feat.dtype).matrix())
        return training.logits(self.settings.surrogate_epochs).argmax(1)

    @torch.no_grad()
    def meta_gradient(self, graph: Graph) -> tuple[PairGradient, float]:
        """Train on a graph and compute the gradient of the loss in the weight of each pair.

        Returns
        -------
        PairGradient, float
            The gradient and the loss, which is the mean cross-entropy over all nodes after the last
            epoch.
        """
        propagation = _propagation(graph, self.feat.dtype)
        training = _Training(self, propagation.matrix())
        loss, (left, right) = training.loss(), training.backward()
        del training  # frees the memory of its states before the next step needs memory
        return _by_pairs(propagation, self.feat, left, right), loss


def _propagation(graph: Graph, dtype: torch.dtype) -> Propagation:
    """S of a graph whose edges all have weight 1."""
    return Propagation.of(graph, torch.ones(graph.num_edges, dtype=dtype), "csr")


class _Training:
    """One training of T epochs, with the states and gradients of every epoch.

    Parameters
    ----------
    surrogate : Surrogate
    adjacency : Tensor
        S as a torch CSR tensor (N, N).

    Attributes
    ----------
    first, second : Tensor (T + 1, F, h), (T + 1, h, C)
        Weights W_1 and W_2 before each epoch, and after the last epoch.
    error, pull : Tensor (T, N, C), (T, F, C)
        Gradients of the training loss in Z and in the product W_1 W_2, for each epoch.
    """

    def __init__(self, surrogate: Surrogate, adjacency: torch.Tensor):
        self.adjacency, self.feat, self.settings = adjacency, surrogate.feat, surrogate.settings
        self.labels = surrogate.labels
        target = one_hot(surrogate.labels)
        self.target = target.to(self.feat.dtype)
        self.num_labelled = int(surrogate.labelled.sum())
        self.share = surrogate.labelled[:, None].to(self.feat.dtype) / self.num_labelled
        (num_nodes, num_features), num_classes = self.feat.shape, target.shape[1]
        epochs, width = self.settings.surrogate_epochs, self.settings.surrogate_feats
        lr, momentum = self.settings.surrogate_lr, self.settings.surrogate_momentum
        self.first = self._empty(epochs + 1, num_features, width)
        self.second = self._empty(epochs + 1, width, num_classes)
        self.error = self._empty(epochs, num_nodes, num_classes)
        self.pull = self._empty(epochs, num_features, num_classes)
        for weight in (self.first[0], self.second[0]):
            torch.nn.init.xavier_uniform_(weight, generator=surrogate.generator)
        velocity_1, velocity_2 = torch.zeros_like(self.first[0]), torch.zeros_like(self.second[0])
        for t in range(epochs):
            first, second = self.first[t], self.second[t]
            torch.sub(_softmax(self.logits(t)), self.target, out=self.error[t])
            self.error[t] *= self.share
            self.pull[t] = self._transposed(self.error[t])
            velocity_1.mul_(momentum).addmm_(self.pull[t], second.t())
            velocity_2.mul_(momentum).addmm_(first.t(), self.pull[t])
            torch.add(first, velocity_1, alpha=-lr, out=self.first[t + 1])
            torch.add(second, velocity_2, alpha=-lr, out=self.second[t + 1])

    def logits(self, t: int) -> torch.Tensor:
        """Z (N, C) before epoch t; for t = T, after the last epoch."""
        return self._product(self.first[t] @ self.second[t])

    def loss(self) -> float:
        """Mean cross-entropy over all nodes after the last epoch."""
        return float(cross_entropy(self.logits(self.settings.surrogate_epochs), self.labels))

    def backward(self) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Compute L (N, r) and R (F, r) with :math:`L R^T` the gradient of `loss` in M."""
        epochs, lr = self.settings.surrogate_epochs, self.settings.surrogate_lr
        momentum = self.settings.surrogate_momentum
        # x_bar is the gradient of the loss in x: in Z, in B = W_1 W_2, in the pull and so on.
        # z_bar and pull_bar of each epoch are kept: Z = M B adds z_bar B^T to the gradient in M,
        # and pull = M^T error adds error pull_bar^T.
        z_bar = self._empty(epochs + 1, *self.target.shape)
        pull_bar = torch.empty_like(self.pull)
        z_bar[epochs] = (_softmax(self.logits(epochs)) - self.target) / len(self.target)
        first_bar = second_bar = velocity_1_bar = velocity_2_bar = torch.zeros(())
        for t in range(epochs, -1, -1):
            first, second = self.first[t], self.second[t]
            if t < epochs:
                velocity_1_bar = momentum * velocity_1_bar - lr * first_bar
                velocity_2_bar = momentum * velocity_2_bar - lr * second_bar
                pull = self.pull[t]
                pull_bar[t] = velocity_1_bar @ second + first @ velocity_2_bar
                first_bar = first_bar + pull @ velocity_2_bar.t()
                second_bar = second_bar + velocity_1_bar.t() @ pull
                z_bar[t] = self._through_softmax(t, self._product(pull_bar[t]))
            b_bar = self._transposed(z_bar[t])
            first_bar = first_bar + b_bar @ second.t()
            second_bar = second_bar + first.t() @ b_bar
        terms = _joined(self.error, pull_bar), _joined(z_bar, self.first @ self.second)
        left, right = zip(*terms, strict=True)
        return torch.cat(left, 1), torch.cat(right, 1)

    def _empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=self.feat.dtype)

    def _product(self, weight: torch.Tensor) -> torch.Tensor:
        """M B (N, C) for B (F, C)."""
        return self._smooth(self.feat.matmul(weight))

    def _transposed(self, x: torch.Tensor) -> torch.Tensor:
        """M^T x (F, C) for x (N, C)."""
        return self.feat.t_matmul(self._smooth(x))

    def _smooth(self, x: torch.Tensor) -> torch.Tensor:
        """S S x (N, C)."""
        return csr_product(self.adjacency, csr_product(self.adjacency, x))

    def _through_softmax(self, t: int, grad: torch.Tensor) -> torch.Tensor:
        """Convert a gradient in the error of epoch t (N, C) to a gradient in its Z."""
        # error = (probs - target) * share. Where the share is 0, the recovered probs are wrong, but
        # the result is 0 all the same.
        probs = self.error[t] * self.num_labelled + self.target
        scaled = probs * grad
        return scaled.sub_(probs.mul_(scaled.sum(1, keepdim=True))).mul_(self.share)


def needed_bytes(
    feat: sp.csr_matrix, num_edges: int, num_classes: int, settings: AttackConfig
) -> float:
    """Estimate the peak memory, in bytes, of `Surrogate.meta_gradient` and of comparing pairs.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    num_edges, num_classes : int
    settings : AttackConfig
    """
    (num_nodes, num_features), epochs = feat.shape, settings.surrogate_epochs + 1
    rows = num_nodes + num_features
    states = epochs * (
        2 * num_classes * rows + num_features * (settings.surrogate_feats + num_classes)
    )
    factors = 2 * min(epochs, _MODES) * num_classes  # columns of L and of R
    blocks = max(states + 2 * factors * rows, 7 * 2 * factors * num_nodes)
    return _COMPARED + 4.0 * blocks + 24 * feat.nnz + 60 * num_edges


def _softmax(logits: torch.Tensor) -> torch.Tensor:
    """Softmax of each row. For few columns, torch's own function takes five times as long."""
    probs = (logits - logits.amax(1, keepdim=True)).exp_()
    return probs.div_(probs.sum(1, keepdim=True))


def _joined(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Factors (N, k C) and (F, k C) whose product is :math:`\sum_t L_t R_t^T`, with k at most T.

    The terms of the T epochs are combined along their k principal directions over the epochs, up to
    the rounding of float32.

    Parameters
    ----------
    left, right : Tensor (T, N, C), (T, F, C)
        :math:`L_t` and :math:`R_t` of each epoch.
    """
    flat = left.reshape(len(left), -1)
    gram = torch.zeros(len(left), len(left), dtype=torch.float64)
    for at in range(0, flat.shape[1], _BLOCK):
        part = flat[:, at : at + _BLOCK].double()
        gram.addmm_(part, part.t())
    strength, modes = torch.linalg.eigh(gram)
    modes = modes[:, strength > _NEGLIGIBLE**2 * strength[-1]].to(left.dtype)  # (T, k)

    def of(blocks: torch.Tensor) -> torch.Tensor:  # (T, n, C) -> (n, k C)
        mixed = modes.t() @ blocks.reshape(len(blocks), -1)
        return mixed.reshape(-1, *blocks.shape[1:]).transpose(0, 1).flatten(1)

    return of(left), of(right)


def _by_pairs(
    propagation: Propagation, feat: FeatureMatrix, left: torch.Tensor, right: torch.Tensor
) -> PairGradient:
    """Convert the gradient L R^T in M = S S X to the gradient in the weight of each pair."""
    # The outer S of M = S (S X) adds (L R^T) (S X)^T to the gradient in S, and the inner S adds
    # S (L R^T) X^T.
    right = feat.matmul(right)
    left = torch.cat([left, propagation(left)], 1)
    right = torch.cat([propagation(right), right], 1)  # (N, 2 r)
    # S_uv = A_uv / sqrt(D_u D_v), so the gradient in D_u is -1 / (2 D_u) times the sum, over all
    # entries of row u and column u of S, of the entry times its gradient.
    scale = propagation.diagonal  # 1 / D
    by_degree = (left * propagation(right)).sum(1) + (right * propagation(left)).sum(1)
    by_degree *= -0.5 * scale
    root = scale.sqrt()[:, None]
    return PairGradient(left.mul_(root), right.mul_(root), by_degree)

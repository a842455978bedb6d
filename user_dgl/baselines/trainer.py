"""Training of a baseline, with the same epochs, checkpoints and results as the training of USER."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.baselines import BASELINES
from user_dgl.baselines.base import Problem
from user_dgl.config import Config
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.runtime.device import device_name
from user_dgl.runtime.streams import Stream, seed_torch
from user_dgl.training.graph_trainer import GraphTrainer
from user_dgl.training.hooks import Hooks
from user_dgl.training.loop import (
    EpochReport,
    Progress,
    finite_means,
    with_total,
)
from user_dgl.training.result import TrainingResult, empty_clusters


class BaselineTrainer(GraphTrainer):
    """Trains the baseline that ``model.kind`` names; has the interface of `Trainer`.

    All draws of an epoch depend on the seed and the epoch alone, so that a checkpoint needs no
    state of a generator. The loss in the result belongs to the final weights: it is the mean over
    the updates that the next epoch would make, computed without making them.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    config : Config
        Settings that `user_dgl.baselines.resolve_baseline` returned.
    hooks : Hooks
    held_out : int64 (H,), optional
        Keys of the held-out pairs, which the graph does not contain. Like other pairs without an
        edge, they may be drawn as pairs without an edge (Kipf and Welling, 2016).
    """

    remedy = "Lower baseline.lr"

    def __init__(
        self,
        graph: Graph,
        feat: sp.csr_matrix,
        config: Config,
        hooks: Hooks | None = None,
        *,
        held_out: np.ndarray | None = None,
    ):
        super().__init__(graph, feat, config, hooks, held_out=held_out)
        # Loss and weights of the best epoch, and the number of epochs since; for baseline.patience.
        self._best: dict[str, Any] = {
            "loss": math.inf,
            "wait": 0,
            "state": None,
        }

    def bytes_beside(self, num_nodes: int, config: Config) -> float:
        """As the method says."""
        return BASELINES[config.model.kind].bytes_beside(num_nodes, config.baseline)

    def build(self) -> None:
        """Make the method and its optimizers."""
        config = self.config
        problem = Problem(
            self.graph.to(self.device),
            self.feat,
            self.features,
            config.baseline,
            self.config.model.known_clusters,
            config.seed,
            self.engine,
        )
        self.method = BASELINES[config.model.kind](problem).to(self.device)
        self._optimizers = self.method.optimizers()
        self.optimizer = next(iter(self._optimizers.values()))

    def memberships(self) -> None:
        """Return None: a baseline has memberships on the observed graph only."""

    # -----------------------------------------------------------------------------------------

    def step(self) -> EpochReport:
        """Make all updates of an epoch of the method."""
        epoch = self.progress.epoch
        state = None
        if self.config.baseline.patience is not None:
            # The loss belongs to the weights before the update, as in the authors' code.
            state = {name: part.clone() for name, part in self.method.state_dict().items()}
        seed_torch(self.config.seed, Stream.BASELINE_UPDATE, epoch)
        self.method.train()
        seen: defaultdict[str, list[float]] = defaultdict(list)
        for name, terms in self.method.updates(epoch):
            values, trains = self.update(terms, self._optimizers[name])
            assert trains, "the terms of a baseline depend on its weights"
            for term, value in values.items():
                seen[term].append(value)
        means = _means(seen)
        self.method.eval()
        with torch.no_grad():
            self.method.finish_epoch(epoch)
        if state is not None:
            self._note(means["total"], state)
        return EpochReport(means, None, {})

    def zero_grad(self) -> None:
        """Clear all gradients; an update also computes those of the other optimizers' weights."""
        self.method.zero_grad(set_to_none=True)

    def _note(self, loss: float, state: dict[str, torch.Tensor]) -> None:
        """Keep the weights if they have the lowest loss so far."""
        best = self._best
        if loss < best["loss"]:
            best |= {"loss": loss, "wait": 0, "state": state}
        else:
            best["wait"] += 1

    def converged(self) -> bool:
        """Return whether the loss has not decreased for ``baseline.patience`` epochs."""
        patience = self.config.baseline.patience
        return patience is not None and self._best["wait"] >= patience

    @torch.no_grad()
    def result(self) -> TrainingResult:
        """Return the result of the last weights, or with patience of those of the lowest loss."""
        if self._best["state"] is not None:
            self.method.load_state_dict(self._best["state"])
        self.method.eval()
        terms = self.evaluate()
        embedding, clusters = self.method.read_out()
        num_clusters = self.config.model.known_clusters
        return TrainingResult(
            clusters=clusters,
            assignments={"kmeans": clusters},
            labels_from="kmeans",
            probs=np.eye(num_clusters, dtype=np.float32)[clusters],
            embedding=embedding,
            graph=self.graph,
            weight=self.graph.edge_weight.numpy(),
            observed=np.ones(self.graph.num_edges, dtype=bool),
            loss=terms,
            restart_losses=[terms["total"]],
            engine=self.engine,
            device=device_name(self.device),
            epoch_seconds=list(self.progress.epoch_seconds),
            warnings=empty_clusters(
                clusters, num_clusters, "kmeans", "more baseline.epochs or another baseline.lr"
            ),
        )

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """Compute the loss terms of the present weights, on pairs drawn for this purpose.

        Raises
        ------
        NonFiniteLossError
        """
        epoch = self.progress.epoch
        seed_torch(self.config.seed, Stream.BASELINE_UPDATE, epoch)
        seen: defaultdict[str, list[float]] = defaultdict(list)
        message = "the loss after training is not finite ({}). Lower baseline.lr"
        for _, terms in self.method.updates(epoch):
            for term, value in finite_means(terms, message).items():
                seen[term].append(value)
        return _means(seen)

    # -----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the content of a checkpoint."""
        return {
            "progress": self.progress.state_dict(),
            "features": self.feat_digest,
            "keys": torch.from_numpy(self.graph.keys),
            "model": self.method.state_dict(),
            "optimizers": {n: each.state_dict() for n, each in self._optimizers.items()},
            "kind": self.config.model.kind,
            "best": self._best,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Raises
        ------
        InputError
            The checkpoint is of other data or of another method.
        """
        self.progress = Progress(**state["progress"])
        same = state["kind"] == self.config.model.kind
        same &= state["features"] == self.feat_digest
        same &= np.array_equal(state["keys"].numpy(), self.graph.keys)
        if not same:
            raise InputError("the checkpoint is of other data or another method")
        self.method.load_state_dict(state["model"])
        for name, optimizer in self._optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self._best = state["best"]


def _means(seen: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean of each term over the updates of an epoch, and the sum of the means."""
    return with_total({term: sum(each) / len(each) for term, each in seen.items()})

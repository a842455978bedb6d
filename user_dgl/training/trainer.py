"""Training of USER on a whole graph: epochs, new candidates, checkpoints and the result.

A `Trainer` gets a graph and features, but no labels. The result comes from the replica with the
lowest loss, or from a consensus of all replicas.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.clustering.consensus import consensus_of
from user_dgl.config import Config
from user_dgl.encoders.dropout import draw_by
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.model import USER, USERLoss
from user_dgl.runtime.device import device_name
from user_dgl.runtime.streams import Stream, stream_rng, torch_generator
from user_dgl.structure.candidates import draw_candidates, merge_candidates
from user_dgl.structure.learned_adjacency import LearnedAdjacency, replace_theta
from user_dgl.training.checkpoint import check_view
from user_dgl.training.graph_trainer import GraphTrainer
from user_dgl.training.hooks import Hooks
from user_dgl.training.loop import (
    EpochReport,
    Progress,
    clusters_in_use,
    finite_means,
    with_total,
)
from user_dgl.training.result import TrainingResult, empty_clusters
from user_dgl.training.stages import first_weight, initial_pairs


class Evaluation(NamedTuple):
    """Output of a forward pass without dropout, and its loss.

    Attributes
    ----------
    assignment : Tensor (N, R, K)
        Y.
    clusters : Tensor (N, R)
        Arg max of Y.
    weights : tuple of S Tensors (P,)
        Weights of each A'.
    embeddings : callable
        Computes the input of each head, R Tensors (N, d).
    terms : dict of str to Tensor (R,)
        Weighted terms of the loss of each replica.
    losses : float64 Tensor (R,)
        Sum of the terms of each replica.
    """

    assignment: torch.Tensor
    clusters: torch.Tensor
    weights: tuple[torch.Tensor, ...]
    embeddings: Callable[[], list[torch.Tensor]]
    terms: dict[str, torch.Tensor]
    losses: torch.Tensor


class Trainer(GraphTrainer):
    """Trainer of USER on a graph.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    config : Config
    hooks : Hooks
    held_out : int64 (H,), optional
        Keys ``src * N + dst`` of pairs that are scored after training. A' does not contain them,
        and the stages before training do not learn from them.
    """

    builds_alike = False  # the pairs of A' come from the checkpoint
    optimizer: torch.optim.Adam

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
        self.prior, self.view = self.preparation.prior, self.preparation.view
        first = self.prior.weight
        if self.view is not None:  # A' starts from these weights to the power of the view
            first = self.view.smoothing_weight(graph, first, torch.ones_like(first).bool())
        self.loss = USERLoss(
            self.config.loss,
            graph.to(self.device),
            self.features,
            self.engine,
            first.to(self.device, self.features.dtype),
        )
        self.model: USER

    def memberships(self) -> Callable[[torch.Tensor], np.ndarray] | None:
        """After training, return a function that computes Y (N, K) for other weights (P,) of A'.

        Y is computed without dropout. The result is None if there are several replicas, if the
        encoder also reads A, or if its points are those of the graph, which know all edges.
        """
        view = self.view
        if self.config.train.restarts > 1 or self.config.model.observed_mix:
            return None
        if view is not None and view.reads_edges:
            return None

        @torch.no_grad()
        def on(weight: torch.Tensor) -> np.ndarray:
            self.model.eval()
            structure = self.model.structure
            if view is not None and not self.config.learns_structure:
                # The weights of the result are those before the power of the view. Pairs of weight
                # 0 are left out of the graph, whatever the power.
                pairs, observed = structure.graph.to("cpu"), structure.observed.cpu()
                powered = view.smoothing_weight(pairs, weight.cpu(), observed)
                weight = powered.masked_fill(weight.cpu() == 0, 0)
            propagation = self.model.propagation(weight.to(self.device, self.features.dtype))
            _, logits, _ = self.model.forward_part(self.features, propagation)
            return torch.softmax(logits, 1).cpu().numpy()

        return on

    # -----------------------------------------------------------------------------------------

    def build(self) -> None:
        """Build the model and the optimiser on the first pairs of A'."""
        structure, static = self.config.structure, self.preparation.static_candidates
        pairs = initial_pairs(self.graph, structure, static, self._rng(), self.feat, self.held_out)
        self.build_on(*pairs)

    def _rng(self) -> np.random.Generator:
        """Generator of the candidates of the current epoch; earlier draws do not change it."""
        return stream_rng(self.config.seed, Stream.CANDIDATES, self.progress.epoch)

    def build_on(self, pairs: Graph, observed: torch.Tensor) -> None:
        """Build model, optimiser and schedule on given pairs of A'.

        Parameters
        ----------
        pairs : Graph
            Pairs of A' (P).
        observed : bool Tensor (P,)
            Whether the pair is an observed edge.
        """
        config, train = self.config, self.config.train
        weight = first_weight(pairs.num_edges, observed, self.prior, config.structure)
        if self.view is not None:
            weight = self.view.smoothing_weight(pairs, weight, observed)
        weight = weight.to(self.features.dtype)
        own = config.learns_structure and not config.structure.shared
        weight = weight.repeat(train.restarts if own else 1, 1)  # (S, P)
        # Without candidates the pairs are the observed edges, whose graph the loss already has.
        graph = self.loss.graph if pairs.num_edges == self.graph.num_edges else pairs
        structure = LearnedAdjacency(
            graph.to(self.device), observed, weight, config.learns_structure
        ).to(self.device)
        self.model = USER(
            structure,
            self.features.shape[1],
            config.model,
            self.engine,
            train.restarts,
            self.view,
        )
        self.model.to(self.device, self.features.dtype)
        self.make_optimizer(self.model, structure)

    def step(self) -> EpochReport:
        """Do one update on the whole graph."""
        self.model.train()
        draw_by(self.model, self.config.seed, self.progress.epoch)
        state = self.model(self.features)
        terms = self.loss(state)
        in_use = clusters_in_use(state.clusters, self.config.model.known_clusters)
        del state  # frees the tensors that the backward pass does not need
        values, _ = self.update(terms)
        return EpochReport(with_total(values), in_use, {})

    @torch.no_grad()
    def evaluate(self) -> Evaluation:
        """Compute state and loss terms without dropout; each call samples the same pairs."""
        self.model.eval()
        state = self.model(self.features)
        generator = torch_generator(self.config.seed, Stream.FINAL_LOSS)
        terms = self.loss(state, generator)
        none = torch.zeros(self.config.train.restarts, device=self.device, dtype=torch.float64)
        return Evaluation(
            state.assignment,
            state.clusters,
            state.weights,
            lambda: self.model.embeddings(state),
            terms,
            sum(terms.values(), none),
        )

    @torch.no_grad()
    def result(self) -> TrainingResult:
        """Return the result of the replica with the lowest loss, or of the consensus."""
        config, progress = self.config, self.progress
        train = config.train
        final = self.evaluate()
        terms, losses = final.terms, final.losses
        means = finite_means(terms, f"after {progress.epoch} epochs the loss is not finite: {{}}")
        best = int(losses.argmin())
        probs = final.assignment.cpu().numpy()  # (N, R, K)
        embeddings = [embedding.cpu().numpy() for embedding in final.embeddings()]
        labels_from = "head"
        assignments = {"head": final.clusters[:, best].cpu().numpy()}
        if self.view is not None:
            assignments |= {"kmeans": self.view.kmeans, "code": self.view.clusters}
            labels_from = self.config.model.labels
        if train.consensus == "none":
            clusters, embedding = assignments[labels_from], embeddings[best]
            probs = probs[:, best]
            weight = final.weights[best if len(final.weights) > 1 else 0]
            means = {name: term[best].item() for name, term in terms.items()}
        else:
            joined = consensus_of(train.consensus, probs, embeddings, self.config.seed)
            clusters, probs, embedding = joined.clusters, joined.probs, joined.embedding
            labels_from = "consensus"
            assignments[labels_from] = clusters
            weight = torch.stack(final.weights).mean(0)
        structure = self.model.structure
        if not config.learns_structure:
            # The view may be smoothed with a power of these weights.
            pairs, observed = structure.graph.num_edges, structure.observed.cpu()
            weight = first_weight(pairs, observed, self.prior, config.structure)
        return TrainingResult(
            clusters=clusters,
            assignments=assignments,
            labels_from=labels_from,
            probs=probs,
            embedding=embedding,
            graph=structure.graph.to("cpu"),
            weight=weight.cpu().numpy(),
            observed=structure.observed.cpu().numpy(),
            loss={"total": sum(means.values()), **means},
            restart_losses=losses.tolist(),
            engine=self.engine,
            device=device_name(self.device),
            epoch_seconds=list(progress.epoch_seconds),
            warnings=empty_clusters(clusters, probs.shape[1], labels_from),
        )

    # -----------------------------------------------------------------------------------------

    def refresh_candidates(self) -> None:
        """Every ``refresh_every`` epochs, replace the lighter half of the candidates by new pairs.

        Pairs inside clusters are drawn from the clusters of the replica with the lowest loss. If
        each replica has its own A', the mean of their weights decides which half is lighter.
        """
        config, progress = self.config.structure.candidates, self.progress
        due = config.refresh_every and progress.epoch and not progress.epoch % config.refresh_every
        if not due or not self.config.learns_structure:
            return
        old = self.model.structure
        now = self.evaluate()
        clusters = now.clusters[:, int(now.losses.argmin())].cpu().numpy()
        drawn = draw_candidates(config, self.graph, self._rng(), clusters, self.feat)
        if not drawn:
            return
        weight = old().detach().mean(0)
        candidates = ~old.observed
        kept = old.observed.clone()
        if candidates.any():
            kept |= candidates & (weight >= weight[candidates].median())
        old_pairs = old.graph.to("cpu")
        is_kept = kept.cpu().numpy()
        drawn.append((old_pairs.src.numpy()[is_kept], old_pairs.dst.numpy()[is_kept]))
        pairs, observed = merge_candidates(self.graph, drawn, self.held_out)
        place = torch.from_numpy(pairs.positions(old_pairs.keys[is_kept])).to(self.device)
        self.replace_structure(pairs, observed, place, kept)

    def replace_structure(
        self, pairs: Graph, observed: torch.Tensor, place: torch.Tensor, kept: torch.Tensor
    ) -> None:
        """Continue on other pairs of A'; parameters as in `LearnedAdjacency.replaced`."""
        old, first = self.model.structure, self.config.structure.candidates.initial_weight
        new = old.replaced(pairs.to(self.device), observed.to(self.device), place, kept, first)
        self.model.set_structure(new)
        replace_theta(self.optimizer, old, new, place, kept)

    # -----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the content of a checkpoint."""
        structure = self.model.structure
        return {
            "progress": self.progress.state_dict(),
            "features": self.feat_digest,
            "view": None if self.view is None else self.view.name,
            "structure": {
                "keys": torch.from_numpy(structure.graph.keys),
                "observed": structure.observed.cpu().clone(),
            },
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "rng": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the result of `state_dict`.

        Raises
        ------
        InputError
            The checkpoint is of another graph, of other features or of another view of these.
        """
        self.progress = Progress(**state["progress"])
        if state["features"] != self.feat_digest:
            raise InputError(
                "the checkpoint is of other features or weights of edges: the data have changed "
                "since"
            )
        check_view(state, None if self.view is None else self.view.name)
        pairs = Graph.from_keys(self.graph.num_nodes, state["structure"]["keys"].numpy())
        pairs = pairs.weighted_like(self.graph)
        if not np.array_equal(pairs.keys[state["structure"]["observed"].numpy()], self.graph.keys):
            raise InputError("the checkpoint is of another graph: its observed edges differ")
        self.build_on(pairs, state["structure"]["observed"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"])

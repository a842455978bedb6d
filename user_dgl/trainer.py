"""Training of USER: epochs, refresh of candidates, checkpoints, result.

Labels do not come here: a `Trainer` gets a graph and features. Replicas are chosen by the loss, or
joined in a consensus.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from user_dgl.candidates import Pairs, draw_candidates, feature_knn, merge_candidates
from user_dgl.clustering import silhouette
from user_dgl.config import Config
from user_dgl.consensus import consensus_of
from user_dgl.errors import InputError, NonFiniteLossError
from user_dgl.feature_matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.losses import USERLoss
from user_dgl.memory import check_memory, freed_memory_kept
from user_dgl.model import USER
from user_dgl.ops import resolve_engine
from user_dgl.priors import prior_of
from user_dgl.smoothing import SmoothedView, smoothed_view
from user_dgl.structure import LearnedAdjacency

# Multiply-adds of a product with the features and the graph.
_SINGLE_THREAD_BELOW = 2**25
# NPSI moves clusters to where the graph wants them. By how much may that loosen them among the
# embeddings before it is the graph's degrees that speak and not its clusters?
_SILHOUETTE_TOLERANCE = 0.02


@dataclass(frozen=True, eq=False)
class Fit:
    """Final state, without dropout, of the replica with the lowest loss, or of the consensus.

    Attributes
    ----------
    clusters : int64 (N,)
        What `ModelConfig.labels` asks for, or the clusters of the consensus.
    assignments : dict of str to int64 (N,)
        Every clustering at hand: ``head``, arg max of Y of the replica with the lowest loss; with
        encoder ``smooth`` ``kmeans``, where it started; with a consensus ``consensus``.
    labels_from : str
        Which of them ``clusters`` is.
    probs : float32 (N, K)
        Y, or the mean of the replicas' Y; its arg max is ``clusters`` if these are the head's.
    embedding : float32 (N, d)
        What the head's linear map reads, or that of the consensus.
    graph : Graph
        Pairs of A'.
    weight : float32 (P,)
        A'; with one A' a replica and a consensus, their mean.
    observed : bool (P,)
    loss : dict of str to float
        Weighted terms and their ``total``; with a consensus, the mean over replicas.
    restart_losses : list of float
        Total of each replica.
    engine : str
    epoch_seconds : list of float
        Those before a resume included.
    warnings : list of str
    """

    clusters: np.ndarray
    assignments: dict[str, np.ndarray]
    labels_from: str
    probs: np.ndarray
    embedding: np.ndarray
    graph: Graph
    weight: np.ndarray
    observed: np.ndarray
    loss: dict[str, float]
    restart_losses: list[float]
    engine: str
    epoch_seconds: list[float]
    warnings: list[str]


@dataclass
class _Progress:
    """Where training stands; all of it goes into a checkpoint."""

    epoch: int = 0
    epoch_seconds: list[float] = field(default_factory=list)
    all_clusters_used: bool = False
    collapsed: bool = False


class Evaluation(NamedTuple):
    """A forward pass without dropout: Y (N, R, K), its arg max (N, R), A' of each copy, what the
    heads read (on demand), the weighted loss terms of each replica (R,) and their sum."""

    assignment: torch.Tensor
    clusters: torch.Tensor
    weights: tuple[torch.Tensor, ...]
    embeddings: Callable[[], list[torch.Tensor]]
    terms: dict[str, torch.Tensor]
    losses: torch.Tensor


class Trainer:
    """Trains USER on a graph.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    config : Config
    log : callable
        Gets each line for people.
    record : callable
        Gets each epoch's numbers as a dict.
    save : callable
        Gets each checkpoint as a dict of tensors and plain types.
    """

    def __init__(
        self,
        graph: Graph,
        feat: sp.csr_matrix,
        config: Config,
        *,
        log: Callable[[str], None] = lambda line: None,
        record: Callable[[dict[str, Any]], None] = lambda row: None,
        save: Callable[[dict[str, Any]], None] = lambda state: None,
    ):
        _check_sizes(graph, feat, config)
        line, self._memory = check_memory(config, graph.num_edges, feat)
        log(line)
        self.config, self.graph, self.feat = config, graph, feat
        self.log, self.record, self.save = log, record, save
        self.device = _resolve_device(config.device)
        self.engine = resolve_engine(config.structure.engine, self.device)
        # Prior and view are computed where the data are.
        self._cpu_engine = resolve_engine(config.structure.engine)
        self.features = FeatureMatrix(feat, device=self.device)
        self.stages: list[dict[str, Any]] = []
        started = time.perf_counter()
        with self._threads():
            self.prior = prior_of(config.structure, graph, feat, config.seed, self._cpu_engine)
        criticism = self.prior.criticism
        if criticism is not None and criticism.noise_share is not None:
            seconds = time.perf_counter() - started
            self.stages.append({"name": "critic", "epochs": 0, "seconds": seconds})
            self.log(
                f"Critic: {100 * criticism.noise_share:.1f} % of the edges look like random "
                f"pairs; weights to the power {criticism.power:g}"
            )
        self.view = self._smoothed_view()
        self.loss = USERLoss(
            config.loss,
            graph.to(self.device),
            self.features,
            self.engine,
            self.prior.weight.to(self.device),
        )
        self._static_candidates: list[Pairs] = []
        candidates = config.structure.candidates
        if config.structure.learnable and candidates.feature_knn:
            self._static_candidates = [feature_knn(feat, candidates.feature_knn)]
        self._learns_structure = config.structure.learnable and config.train.structure_lr != 0
        self._feat_digest = _digest(feat)
        self._progress = _Progress()

    def _smoothed_view(self) -> SmoothedView | None:
        model = self.config.model
        if model.encoder != "smooth":
            return None
        started = time.perf_counter()
        with self._threads():
            view = smoothed_view(
                self.graph,
                self.prior.weight,
                self.feat,
                model.smooth,
                model.num_clusters,
                self.config.seed,
                self._cpu_engine,
            )
        self.stages.append({"name": "view", "epochs": 0, "seconds": time.perf_counter() - started})
        self.log(f"View: smoothed over {model.smooth.hops} steps, own share {view.self_share:g}")
        return view

    def fit(self, checkpoint: dict[str, Any] | None = None) -> Fit:
        """Train all replicas, or go on from a checkpoint.

        Raises
        ------
        NonFiniteLossError
            A term is NaN or infinite; nothing was updated with it.
        """
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), self._threads(), _denormals_flushed():
            if checkpoint is None:
                self._start()
            else:
                self._restore(checkpoint)
            self._run_epochs()
            return self._result()

    # -----------------------------------------------------------------------------------------

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """One thread while training a small graph, as many as torch has for a larger one.

        Small products gain little from a second thread and lose much where cores are shared; and
        a small graph then gives the same result whatever the number of cores.
        """
        entries = self.feat.nnz + 2 * self.graph.num_edges
        model = self.config.model
        widths = (64,) if model.encoder == "smooth" else model.hidden_feats
        small = entries * max(widths) < _SINGLE_THREAD_BELOW
        threads = torch.get_num_threads()
        torch.set_num_threads(1 if small else threads)
        try:
            with threadpool_limits(1 if small else None):
                yield
        finally:
            torch.set_num_threads(threads)

    def _start(self) -> None:
        sequence = np.random.SeedSequence([self.config.seed, 0])
        torch.manual_seed(int(sequence.generate_state(1)[0]))
        self._build(*self._initial_pairs())
        self._checkpoint()

    def _rng(self) -> np.random.Generator:
        """Draws of candidates, the same at an epoch whatever came before."""
        return np.random.default_rng([self.config.seed, 0, self._progress.epoch])

    def _initial_pairs(self) -> tuple[Graph, torch.Tensor]:
        config, drawn = self.config.structure, list(self._static_candidates)
        if config.learnable:
            drawn += draw_candidates(config.candidates, self.graph, self._rng())
        return merge_candidates(self.graph, drawn)

    def _build(self, pairs: Graph, observed: torch.Tensor) -> None:
        """Model, optimiser and schedule for the given pairs of A'."""
        config, train = self.config, self.config.train
        weight = torch.full((pairs.num_edges,), config.structure.candidates.initial_weight)
        weight[observed] = self.prior.weight
        own = self._learns_structure and not config.structure.shared
        weight = weight.repeat(train.restarts if own else 1, 1)  # (S, P)
        structure = LearnedAdjacency(
            pairs.to(self.device), observed, weight, self._learns_structure
        ).to(self.device)
        self.model = USER(
            structure,
            self.features.shape[1],
            config.model,
            self.engine,
            train.restarts,
            self.view,
        )
        self.model.to(self.device)
        network = [p for n, p in self.model.named_parameters() if n != "structure.theta"]
        groups = [{"params": network, "weight_decay": train.weight_decay}]
        if self._learns_structure:
            # Without weight decay: it would draw every weight to softplus(0) = 0.69.
            lr = train.lr if train.structure_lr is None else train.structure_lr
            groups.append({"params": [self.model.structure.theta], "lr": lr, "weight_decay": 0.0})
        self.optimizer = torch.optim.Adam(groups, lr=train.lr)
        self.schedule = None
        if train.plateau_factor < 1:
            self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
                self.optimizer, factor=train.plateau_factor, patience=train.plateau_patience
            )

    def _run_epochs(self) -> None:
        train, progress = self.config.train, self._progress
        # disable=None: a bar on a terminal, none in a file, where the log lines serve.
        bar = tqdm(
            total=train.epochs, initial=progress.epoch, desc="training", disable=None, leave=False
        )
        keeps_freed = self._memory.keeps_freed
        with bar, ExitStack() as memory:
            while progress.epoch < train.epochs:
                started = time.perf_counter()
                self._refresh_candidates()
                terms, in_use, extra = self._step()
                seconds = time.perf_counter() - started
                progress.epoch_seconds.append(seconds)
                progress.epoch += 1
                if keeps_freed:
                    # Not before: what outlives an epoch would lie between the blocks that do not.
                    memory.enter_context(freed_memory_kept())
                    keeps_freed = False
                self._report(terms, in_use, extra, seconds)
                bar.update()
                if progress.epoch % train.checkpoint_every == 0 or progress.epoch == train.epochs:
                    self._checkpoint()

    def _step(self) -> tuple[dict[str, float], int, dict[str, float]]:
        """One epoch: means of the terms over replicas, clusters in use, further numbers to report.

        The clusters in use are those of the replica that uses fewest.
        """
        self.model.train()
        state = self.model(self.features)
        terms = self.loss(state)
        in_use = clusters_in_use(state.clusters, self.config.model.num_clusters)
        del state  # what no gradient needs would stay through the backward pass
        values = finite_means(
            terms,
            f"epoch {self._progress.epoch + 1}: the loss is not finite ({{}}); the model was not "
            "updated with it. Lower train.lr or the weight of that term",
        )
        # Summed, not averaged: a replica's gradient must not depend on how many there are.
        total = sum(term.sum() for term in terms.values())
        if isinstance(total, torch.Tensor) and total.requires_grad:
            total.backward()
            self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step(sum(values.values()))
        # Between epochs no block of the size of the graph is in the way of the next one's.
        self.optimizer.zero_grad(set_to_none=True)
        values["total"] = sum(values.values())
        return values, in_use, {}

    def _report(
        self, terms: dict[str, float], in_use: int, extra: dict[str, float], seconds: float
    ) -> None:
        progress, train = self._progress, self.config.train
        row = {"epoch": progress.epoch, "loss": terms["total"]}
        row |= {name: value for name, value in terms.items() if name != "total"}
        row |= {
            "clusters_in_use": in_use,
            "lr": self.optimizer.param_groups[0]["lr"],
            "seconds": seconds,
        }
        self.record(row | extra)
        self._watch_collapse(in_use)
        if progress.epoch % train.log_every and progress.epoch != train.epochs:
            return
        parts = [f"Epoch {progress.epoch:05d}", f"Loss {terms['total']:.4f}"]
        parts += [f"{name} {value:.4f}" for name, value in terms.items() if name != "total"]
        parts += [f"{name.replace('_', ' ')} {value:.4f}" for name, value in extra.items()]
        parts += [f"Clusters {in_use}", f"Time {seconds:.3f}"]
        self.log(" | ".join(parts))

    def _watch_collapse(self, in_use: int) -> None:
        progress, asked = self._progress, self.config.model.num_clusters
        if in_use == asked:
            progress.all_clusters_used = True
        elif progress.all_clusters_used and not progress.collapsed:
            progress.collapsed = True
            self.log(f"Warning: epoch {progress.epoch}: {in_use} of {asked} clusters in use")

    @torch.no_grad()
    def _evaluate(self) -> Evaluation:
        """Final state and loss terms, without dropout, with a fixed draw of sampled pairs."""
        self.model.eval()
        state = self.model(self.features)
        generator = torch.Generator().manual_seed(self.config.seed)
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
    def _result(self) -> Fit:
        train, progress = self.config.train, self._progress
        final = self._evaluate()
        terms, losses = final.terms, final.losses
        means = finite_means(terms, f"after {progress.epoch} epochs the loss is not finite: {{}}")
        best = int(losses.argmin())
        probs = final.assignment.cpu().numpy()  # (N, R, K)
        embeddings = [embedding.cpu().numpy() for embedding in final.embeddings()]
        labels_from = "head"
        assignments = {"head": final.clusters[:, best].cpu().numpy()}
        if self.view is not None:
            assignments["kmeans"] = self.view.clusters
            labels_from = self._labels_from(assignments, embeddings[best])
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
        asked, found = probs.shape[1], len(np.unique(clusters))
        warnings = []
        if found < asked:
            warnings.append(
                f"{asked} clusters asked for, {found} found: the others are empty; try more "
                "train.restarts or another train.lr"
            )
        structure = self.model.structure
        return Fit(
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
            epoch_seconds=list(progress.epoch_seconds),
            warnings=warnings,
        )

    def _labels_from(self, assignments: dict[str, np.ndarray], embedding: np.ndarray) -> str:
        """Which clustering is the result, by `ModelConfig.labels`."""
        rule = self.config.model.labels
        if rule != "auto":
            return rule
        used = {name: len(np.unique(clusters)) for name, clusters in assignments.items()}
        if used["head"] < used["kmeans"]:
            # Few clusters can be far apart: their silhouette would say nothing of those given up.
            return "kmeans"
        head, kmeans = (
            silhouette(embedding, assignments[name], self.config.seed)
            for name in ("head", "kmeans")
        )
        return "head" if head >= kmeans - _SILHOUETTE_TOLERANCE * abs(kmeans) else "kmeans"

    # -----------------------------------------------------------------------------------------

    def _refresh_candidates(self) -> None:
        """Every so many epochs, new pairs take the place of the lighter half of the candidates.

        Pairs within clusters are drawn in those of the replica with the lowest loss; where each
        replica has its own A', the mean of their weights says what is light.
        """
        config, progress = self.config.structure.candidates, self._progress
        due = config.refresh_every and progress.epoch and not progress.epoch % config.refresh_every
        if not due or not self._learns_structure:
            return
        old = self.model.structure
        now = self._evaluate()
        clusters = now.clusters[:, int(now.losses.argmin())].cpu().numpy()
        drawn = draw_candidates(config, self.graph, self._rng(), clusters)
        if not drawn:
            return
        weight = old().detach().mean(0)
        candidates = ~old.observed
        kept = old.observed.clone()
        if candidates.any():
            kept |= candidates & (weight >= weight[candidates].median())
        kept = kept.cpu().numpy()
        pairs_kept = old.graph.to("cpu")
        drawn.append((pairs_kept.src.numpy()[kept], pairs_kept.dst.numpy()[kept]))
        pairs, observed = merge_candidates(self.graph, drawn)
        place = torch.from_numpy(pairs.positions(pairs_kept.keys[kept])).to(self.device)
        self._replace_structure(pairs, observed, place, torch.from_numpy(kept).to(self.device))

    def _replace_structure(self, pairs, observed, place, kept) -> None:
        """New pairs at their first weight; those kept take theta and Adam's moments along."""
        old = self.model.structure.theta
        first = self.config.structure.candidates.initial_weight
        structure = LearnedAdjacency(
            pairs.to(self.device),
            observed.to(self.device),
            torch.full((len(old), pairs.num_edges), first, device=self.device),
        )
        with torch.no_grad():
            structure.theta[:, place] = old[:, kept]
        self.model.set_structure(structure)
        self.optimizer.param_groups[1]["params"] = [structure.theta]
        moments = self.optimizer.state.pop(old, None)
        if moments:
            carried = {"step": moments["step"]}
            for name in ("exp_avg", "exp_avg_sq"):
                carried[name] = torch.zeros_like(structure.theta)
                carried[name][:, place] = moments[name][:, kept]
            self.optimizer.state[structure.theta] = carried

    # -----------------------------------------------------------------------------------------

    def _structure_state(self) -> dict[str, torch.Tensor]:
        structure = self.model.structure
        keys = torch.from_numpy(structure.graph.to("cpu").keys)
        return {"keys": keys, "observed": structure.observed.cpu().clone()}

    def _checkpoint(self) -> None:
        self.save(self._state())

    def _state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        on_gpu = self.device.type == "cuda"
        return {
            "progress": vars(self._progress),
            "features": self._feat_digest,
            "structure": self._structure_state(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "rng": torch.get_rng_state(),
            "rng_cuda": torch.cuda.get_rng_state(self.device) if on_gpu else None,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        try:
            self._progress = _Progress(**state["progress"])
            same_features = state["features"] == self._feat_digest
        except (KeyError, TypeError):
            raise InputError("the checkpoint is not one of this version of user_dgl") from None
        if not same_features:
            raise InputError("the checkpoint is of other features: the data have changed since")
        pairs = Graph.from_keys(self.graph.num_nodes, state["structure"]["keys"].numpy())
        if not np.array_equal(pairs.keys[state["structure"]["observed"].numpy()], self.graph.keys):
            raise InputError("the checkpoint is of another graph: its observed edges differ")
        self._build(pairs, state["structure"]["observed"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"])
        if state["rng_cuda"] is not None:
            torch.cuda.set_rng_state(state["rng_cuda"], self.device)


@contextmanager
def _denormals_flushed() -> Iterator[None]:
    """Numbers below 1e-38 count as 0: saturated memberships and their squares are full of them.

    A CPU takes a hundred times as long to multiply one, and beside numbers of ordinary size it
    changes nothing.
    """
    before = bool(torch.tensor(1e-40) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def clusters_in_use(clusters: torch.Tensor, num_clusters: int) -> int:
    """Number of clusters that have nodes, in the replica of clusters (N, R) that uses fewest."""
    return min(
        int((torch.bincount(column, minlength=num_clusters) > 0).sum())
        for column in clusters.unbind(1)
    )


def finite_means(terms: dict[str, torch.Tensor], message: str) -> dict[str, float]:
    """Mean of each term over replicas.

    Raises
    ------
    NonFiniteLossError
        With the message, into which the terms are put, where one is not finite in some replica.
    """
    values = {name: term.mean().item() for name, term in terms.items()}
    if not all(math.isfinite(value) for value in values.values()):
        shown = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        raise NonFiniteLossError(message.format(shown))
    return values


def _digest(feat: sp.csr_matrix) -> str:
    """Hash of a sparse matrix, to know it again."""
    parts = hashlib.sha256(str(feat.shape).encode())
    for part in (feat.indptr.astype(np.int64), feat.indices.astype(np.int64), feat.data):
        parts.update(np.ascontiguousarray(part).data)
    return parts.hexdigest()


def _check_sizes(graph: Graph, feat: sp.csr_matrix | None, config: Config) -> None:
    clusters = config.model.num_clusters
    if clusters is None:
        raise InputError("model.num_clusters is not set: say how many clusters to find")
    if clusters > graph.num_nodes:
        raise InputError(f"{clusters} clusters asked for, {graph.num_nodes} nodes given")
    if feat is None:
        raise InputError("the data have no node features, which the encoder needs")
    if feat.shape[1] == 0:
        raise InputError("the node features have no columns")


def _resolve_device(device: str) -> torch.device:
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device=cuda: torch sees no CUDA device here; use device=cpu")
    return torch.device("cuda" if device == "cuda" else "cpu")

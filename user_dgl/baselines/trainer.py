"""Training of a baseline: the epochs, checkpoints and results that USER has."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.baselines import BASELINES
from user_dgl.baselines.base import Problem
from user_dgl.config import Config
from user_dgl.errors import InputError
from user_dgl.features.matrix import FeatureMatrix, feature_digest
from user_dgl.graph import Graph
from user_dgl.graph.ops import resolve_engine
from user_dgl.runtime.device import device_name, resolve_device
from user_dgl.training.loop import EpochLoop, Progress, denormals_flushed, finite_means
from user_dgl.training.memory import check_memory
from user_dgl.training.result import TrainingResult, empty_clusters
from user_dgl.training.stages import check_sizes, prepare, threads_for


class BaselineTrainer(EpochLoop):
    """Trains the baseline that ``model.kind`` names; the interface is that of `Trainer`.

    All that is drawn in an epoch depends on the seed and the epoch alone, so that a checkpoint
    needs no generator's state. The loss of the result is that of its weights: the mean over the
    updates that an epoch would make of them, without any of these.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    config : Config
        As `user_dgl.baselines.resolve_baseline` gives it.
    log, record, save : callable
        As for `EpochLoop`.
    held_out : int64 (H,), optional
        Keys of pairs that nothing is learned from; the graph has none of them.
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
        held_out: np.ndarray | None = None,
    ):
        check_sizes(graph, feat, config)
        self.device = resolve_device(config)
        beside = BASELINES[config.model.kind].bytes_beside(graph.num_nodes, config.baseline)
        line, plan = check_memory(config, graph.num_edges, feat, self.device, beside)
        log(line)
        super().__init__(config, log, record, save)
        self.graph, self.feat, self._keeps_freed = graph, feat, plan.keeps_freed
        self.engine = resolve_engine(config.structure.engine, self.device)
        self.preparation = prepare(graph, feat, config, log, held_out)
        self.config = self.preparation.config
        self._feat_digest = feature_digest(feat)
        # Loss and weights of the best epoch, and how many came since; with baseline.patience.
        self._best: dict[str, Any] = {
            "loss": math.inf,
            "wait": 0,
            "state": None,
        }

    def fit(self, checkpoint: dict[str, Any] | None = None) -> TrainingResult:
        """Train, or go on from a checkpoint.

        Raises
        ------
        NonFiniteLossError
            A term is NaN or infinite; nothing was updated with it.
        """
        threads = threads_for(self.graph, self.feat, self.config)
        with torch.random.fork_rng(devices=[]), threads, denormals_flushed():
            self._seed(0)
            config = self.config
            problem = Problem(
                self.graph.to(self.device),
                self.feat,
                FeatureMatrix(self.feat, device=self.device),
                config.baseline,
                config.model.num_clusters,
                config.seed,
                self.engine,
            )
            self.method = BASELINES[config.model.kind](problem).to(self.device)
            self._optimizers = self.method.optimizers()
            self.optimizer = next(iter(self._optimizers.values()))
            if checkpoint is not None:
                self._restore(checkpoint)
            self._run_epochs()
            return self._result()

    def memberships(self) -> None:
        """Of no graph but the observed one, see `Trainer.memberships`."""

    # -----------------------------------------------------------------------------------------

    def _seed(self, stage: int) -> None:
        sequence = np.random.SeedSequence([self.config.seed, stage])
        torch.default_generator.manual_seed(int(sequence.generate_state(1)[0]))

    def _step(self) -> tuple[dict[str, float], int | None, dict[str, float]]:
        epoch = self._progress.epoch
        message = (
            f"epoch {epoch + 1}: the loss is not finite ({{}}); the model was not updated with it. "
            "Lower baseline.lr"
        )
        state = None
        if self.config.baseline.patience is not None:
            # The loss is that of the weights before the update, as in the authors' code.
            state = {name: part.clone() for name, part in self.method.state_dict().items()}
        self._seed(1 + epoch)
        self.method.train()
        seen = defaultdict(list)
        for name, terms in self.method.updates(epoch):
            for term, value in finite_means(terms, message).items():
                seen[term].append(value)
            sum(terms.values()).backward()
            self._optimizers[name].step()
            # Of all weights: those of other optimizers have got gradients too.
            self.method.zero_grad(set_to_none=True)
        values = _means(seen)
        self.method.eval()
        with torch.no_grad():
            self.method.finish_epoch(epoch)
        if state is not None:
            self._note(values["total"], state)
        return values, None, {}

    def _note(self, loss: float, state: dict[str, torch.Tensor]) -> None:
        """Keep the weights with the lowest loss."""
        best = self._best
        if loss < best["loss"]:
            best |= {"loss": loss, "wait": 0, "state": state}
        else:
            best["wait"] += 1

    def _converged(self) -> bool:
        patience = self.config.baseline.patience
        return patience is not None and self._best["wait"] >= patience

    @torch.no_grad()
    def _result(self) -> TrainingResult:
        if self._best["state"] is not None:
            self.method.load_state_dict(self._best["state"])
        self.method.eval()
        terms = self._terms()
        embedding, clusters = self.method.read_out()
        num_clusters = self.config.model.num_clusters
        return TrainingResult(
            clusters=clusters,
            assignments={"kmeans": clusters},
            labels_from="kmeans",
            probs=np.eye(num_clusters, dtype=np.float32)[clusters],
            embedding=embedding,
            graph=self.graph,
            weight=np.ones(self.graph.num_edges, dtype=np.float32),
            observed=np.ones(self.graph.num_edges, dtype=bool),
            loss=terms,
            restart_losses=[terms["total"]],
            engine=self.engine,
            device=device_name(self.device),
            epoch_seconds=list(self._progress.epoch_seconds),
            warnings=empty_clusters(
                clusters, num_clusters, "more baseline.epochs or another baseline.lr"
            ),
        )

    def _terms(self) -> dict[str, float]:
        """Terms of the present weights, on a draw of their own.

        Raises
        ------
        NonFiniteLossError
        """
        epoch = self._progress.epoch
        self._seed(1 + epoch)
        seen = defaultdict(list)
        message = "the loss after training is not finite ({}). Lower baseline.lr"
        for _, terms in self.method.updates(epoch):
            for term, value in finite_means(terms, message).items():
                seen[term].append(value)
        return _means(seen)

    # -----------------------------------------------------------------------------------------

    def _checkpoint(self) -> None:
        self.save(
            {
                "progress": vars(self._progress),
                "features": self._feat_digest,
                "keys": torch.from_numpy(self.graph.keys),
                "model": self.method.state_dict(),
                "optimizers": {n: each.state_dict() for n, each in self._optimizers.items()},
                "kind": self.config.model.kind,
                "best": self._best,
            }
        )

    def _restore(self, state: dict[str, Any]) -> None:
        try:
            self._progress = Progress(**state["progress"])
            same = state["kind"] == self.config.model.kind
            same &= state["features"] == self._feat_digest
            same &= np.array_equal(state["keys"].numpy(), self.graph.keys)
            optimizers = state["optimizers"]
        except (KeyError, TypeError):
            raise InputError("the checkpoint is not one of this version of user_dgl") from None
        if not same:
            raise InputError("the checkpoint is of other data or another method")
        try:
            self.method.load_state_dict(state["model"])
            for name, optimizer in self._optimizers.items():
                optimizer.load_state_dict(optimizers[name])
            self._best = state["best"]
        except (KeyError, RuntimeError, TypeError, ValueError):
            raise InputError("the checkpoint does not fit the settings: is it damaged?") from None


def _means(seen: dict[str, list[float]]) -> dict[str, float]:
    """Mean of each term over an epoch's updates, and the sum of these."""
    values = {term: sum(each) / len(each) for term, each in seen.items()}
    return values | {"total": sum(values.values())}

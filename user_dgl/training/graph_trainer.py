"""What trainers that hold the whole graph in one process have in common."""

import hashlib
from contextlib import AbstractContextManager

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.config import Config
from user_dgl.features.matrix import FeatureMatrix, feature_digest
from user_dgl.graph import Graph
from user_dgl.graph.ops import resolve_engine
from user_dgl.runtime.device import resolve_device
from user_dgl.training.hooks import Hooks
from user_dgl.training.loop import EpochLoop
from user_dgl.training.memory import check_memory
from user_dgl.training.stages import check_sizes, prepare, threads_for


class GraphTrainer(EpochLoop):
    """An `EpochLoop` on a whole graph, after the stages before training.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    config : Config
    hooks : Hooks, optional
    held_out : int64 (H,), optional
        Keys ``src * N + dst`` of pairs that are scored after training. The stages before training
        do not learn from them.

    Raises
    ------
    InputError
        Sizes and settings that do not go together, or a run that cannot fit into memory.
    """

    def __init__(
        self,
        graph: Graph,
        feat: sp.csr_matrix,
        config: Config,
        hooks: Hooks | None = None,
        *,
        held_out: np.ndarray | None = None,
    ):
        hooks = hooks or Hooks()
        check_sizes(graph, feat, config)
        self.device = resolve_device(config)
        beside = self.bytes_beside(graph.num_nodes, config)
        line, plan = check_memory(config, graph.num_edges, feat, self.device, beside)
        hooks.log(line)
        super().__init__(config, hooks)
        self.graph, self.feat, self.keeps_freed_memory = graph, feat, plan.keeps_freed
        self.engine = resolve_engine(config.structure.engine, self.device)
        self.features = FeatureMatrix(
            feat, dtype=getattr(torch, config.train.precision), device=self.device
        )
        self.held_out = held_out
        self.preparation = prepare(graph, feat, config, self.log, held_out, hooks.stages)
        self.config = self.preparation.config
        self.feat_digest = _data_digest(graph, feat)

    def bytes_beside(self, num_nodes: int, config: Config) -> float:
        """Bytes that an update holds at its peak beside what model and encoder hold."""
        return 0.0

    def threads(self) -> AbstractContextManager[None]:
        """Use one thread for a small graph, see `threads_for`."""
        return threads_for(self.graph, self.feat, self.config)


def _data_digest(graph: Graph, feat: sp.csr_matrix) -> str:
    """Digest of the features and of the weights of the edges, to recognise them in a resume."""
    digest = feature_digest(feat)
    if graph.weight is None:
        return digest
    return hashlib.sha256(digest.encode() + graph.weight.numpy().tobytes()).hexdigest()

"""DeepWalk (Perozzi et al., 2014), by DGL."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from user_dgl.baselines.base import Baseline, Problem, Terms, required
from user_dgl.config import BaselineConfig
from user_dgl.errors import InputError
from user_dgl.graph.dgl_engine import both_directions

_WALK_LENGTH = 40
# Weight of a negative pair, as if five of them were drawn for each pair of near nodes.
_NEGATIVES = 5
# Walks in an update.
_BATCH = 32


class DeepWalk(Baseline):
    """Trains nodes that are near each other on random walks to have similar embeddings.

    Features are not read. An epoch is one walk from each node that has neighbours; an isolated node
    keeps its initial embedding. There are differences from the paper: negative sampling and Adam
    replace hierarchical softmax and SGD, and with them, as in DGL's example, there are 5 walks from
    each node and a window of 5 instead of 80 and 10.
    """

    defaults = BaselineConfig(epochs=5, lr=0.01, hidden_feats=(128,), window=5)
    one_layer = True
    cpu_only = True  # the DGL of the package index has no GPU support
    reads_weights = False  # the walks take all edges alike

    def __init__(self, problem: Problem):
        super().__init__(problem)
        # Imported only where it is used: importing DGL takes seconds.
        from user_dgl._dgl import dgl

        settings = problem.settings
        self.starts = torch.nonzero(problem.graph.degree).squeeze(1)
        if not len(self.starts):
            raise InputError("model.kind=deepwalk walks along edges, and the graph has none")
        self.walks = dgl.nn.DeepWalk(
            both_directions(problem.graph),
            emb_dim=required(settings.hidden_feats)[-1],
            walk_length=_WALK_LENGTH,
            window_size=required(settings.window),
            neg_weight=_NEGATIVES,
            negative_size=1,
        )

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        lr = required(self.problem.settings.lr)
        return {"model": torch.optim.SparseAdam(list(self.parameters()), lr=lr)}

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        from user_dgl._dgl import dgl

        with _pythons_random(torch.initial_seed()):
            dgl.seed(torch.initial_seed() % 2**31)
            order = self.starts[torch.randperm(len(self.starts))].to(self.problem.graph.src.dtype)
            for batch in order.split(_BATCH):
                yield "model", {"skip_gram": self.walks(self.walks.sample(batch))}

    def embed(self) -> torch.Tensor:
        return self.walks.node_embed.weight


@contextmanager
def _pythons_random(seed: int) -> Iterator[None]:
    """Seed Python's generator, from which DGL draws negative pairs, and restore it afterwards."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)

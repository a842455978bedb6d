"""DeepWalk (Perozzi et al., 2014), by DGL."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from user_dgl.baselines.base import Baseline
from user_dgl.config import BaselineConfig
from user_dgl.errors import InputError
from user_dgl.graph.dgl_engine import both_directions

_WALK_LENGTH = 40
# Pairs that are not near each other count five times, as if five were drawn for each one that is.
_NEGATIVES = 5
# Walks in an update.
_BATCH = 32


class DeepWalk(Baseline):
    """Embeddings of nodes near each other on random walks alike; features are not read.

    An epoch is one walk from each node that has neighbours; others keep the embedding that they
    start with. Not as in the paper: negative sampling and Adam in place of hierarchical softmax and
    SGD, and with them, as in DGL's example, 5 walks a node and a window of 5, not 80 and 10.
    """

    defaults = BaselineConfig(epochs=5, lr=0.01, hidden_feats=(128,), window=5)
    cpu_only = True  # as the DGL of the package index is

    def __init__(self, problem):
        super().__init__(problem)
        # Imported by those who use it: DGL takes seconds.
        from user_dgl._dgl import dgl

        settings = problem.settings
        self.starts = torch.nonzero(problem.graph.degree).squeeze(1)
        if not len(self.starts):
            raise InputError("model.kind=deepwalk walks along edges, and the graph has none")
        self.walks = dgl.nn.DeepWalk(
            both_directions(problem.graph),
            emb_dim=settings.hidden_feats[-1],
            walk_length=_WALK_LENGTH,
            window_size=settings.window,
            neg_weight=_NEGATIVES,
            negative_size=1,
        )

    def optimizers(self):
        lr = self.problem.settings.lr
        return {"model": torch.optim.SparseAdam(list(self.parameters()), lr=lr)}

    def updates(self, epoch):
        from user_dgl._dgl import dgl

        with _pythons_random(torch.initial_seed()):
            dgl.seed(torch.initial_seed() % 2**31)
            order = self.starts[torch.randperm(len(self.starts))].to(self.problem.graph.src.dtype)
            for batch in order.split(_BATCH):
                yield "model", {"skip_gram": self.walks(self.walks.sample(batch))}

    def embed(self):
        return self.walks.node_embed.weight


@contextmanager
def _pythons_random(seed: int) -> Iterator[None]:
    """Python's own generator, from which DGL draws non-neighbours, by a seed and back again."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)

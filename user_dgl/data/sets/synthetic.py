"""Attributed stochastic block model."""

import numpy as np
import scipy.sparse as sp

from user_dgl.config import SyntheticConfig
from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.errors import InputError
from user_dgl.graph import Graph

_MOST_ROUNDS = 200


def block_model(config: SyntheticConfig) -> AttributedGraph:
    """A graph with planted blocks and features that hint at them.

    There are ``round(num_nodes * average_degree / 2)`` edges, distinct pairs: with probability
    ``mixing`` both ends are drawn from all nodes, else both from one block. Each node draws
    ``words_per_node`` words, a share ``topic_share`` of them expected from its block's own columns
    and the rest from all columns; a word drawn twice counts once. Blocks are scattered over the
    node ids.

    Parameters
    ----------
    config : SyntheticConfig

    Returns
    -------
    AttributedGraph
        Features (N, num_features) are 0 or 1, labels are the blocks.

    Raises
    ------
    InputError
        Fewer nodes or columns than blocks; more edges than the pairs can hold.
    """
    num_nodes, num_blocks = config.num_nodes, config.num_blocks
    for name in ("num_nodes", "num_features"):
        if getattr(config, name) < num_blocks:
            raise InputError(
                f"data.synthetic.{name}={getattr(config, name)}: expected one for each of the "
                f"{num_blocks} blocks at least"
            )
    rng = np.random.default_rng(config.seed)
    node = rng.permutation(num_nodes)  # place in the order of blocks -> node id
    start = np.arange(num_blocks + 1) * num_nodes // num_blocks  # block b: places start[b:b+2]
    block = np.repeat(np.arange(num_blocks), np.diff(start))
    keys = _draw_pairs(config, start, block, rng)
    u, v = np.divmod(keys, num_nodes)
    graph, _ = Graph.from_edges(num_nodes, node[u], node[v])
    labels = np.empty(num_nodes, dtype=np.int64)
    labels[node] = block
    return AttributedGraph(graph, _draw_words(config, labels, rng), labels)


def _draw_pairs(config, start, block, rng) -> np.ndarray:
    """Distinct keys ``u * N + v``, u < v, of places in the order of blocks."""
    num_nodes = config.num_nodes
    num_edges = round(num_nodes * config.average_degree / 2)
    keys = np.empty(0, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        missing = num_edges - len(keys)
        if not missing:
            return keys
        # One end, then the other from all nodes or from the block of the first.
        count = missing + missing // 8 + 16
        u = rng.integers(num_nodes, size=count)
        mixed = rng.random(count) < config.mixing
        low = np.where(mixed, 0, start[block[u]])
        high = np.where(mixed, num_nodes, start[block[u] + 1])
        v = rng.integers(low, high)
        drawn = np.minimum(u, v) * num_nodes + np.maximum(u, v)
        # The first num_edges distinct draws, so that no pair is favoured by its key.
        keys = np.concatenate([keys, drawn[u != v]])
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])][:num_edges]
    raise InputError(
        f"data.synthetic: {num_edges} distinct edges do not fit {num_nodes} nodes in "
        f"{config.num_blocks} blocks at mixing={config.mixing}: lower average_degree"
    )


def _draw_words(config, labels, rng) -> sp.csr_matrix:
    shape = (config.num_nodes, config.words_per_node)
    own = np.arange(config.num_blocks + 1) * config.num_features // config.num_blocks
    topical = rng.random(shape) < config.topic_share
    low = np.where(topical, own[labels][:, None], 0)
    high = np.where(topical, own[labels + 1][:, None], config.num_features)
    words = rng.integers(low, high)  # (N, words_per_node)
    indptr = np.arange(config.num_nodes + 1) * config.words_per_node
    feat = sp.csr_matrix(
        (np.ones(words.size, dtype=np.float32), words.ravel(), indptr),
        shape=(config.num_nodes, config.num_features),
    )
    feat.sum_duplicates()
    feat.data[:] = 1
    return feat

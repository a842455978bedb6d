"""Attributed stochastic block model."""

import numpy as np
import scipy.sparse as sp

from user_dgl.config import SyntheticConfig
from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.runtime.streams import Stream, stream_rng

_MOST_ROUNDS = 200


def block_model(config: SyntheticConfig) -> AttributedGraph:
    """Draw a graph with planted blocks, and features that correlate with the blocks.

    The graph has ``round(num_nodes * average_degree / 2)`` distinct edges. With probability
    ``mixing``, both ends of an edge are drawn from all nodes, else both are drawn from one block.
    Each node draws ``words_per_node`` words. With probability ``topic_share``, a word is drawn from
    the columns of the node's block, else from all columns. A word that is drawn twice counts once.
    The nodes of a block have random ids.

    Parameters
    ----------
    config : SyntheticConfig

    Returns
    -------
    AttributedGraph
        The features (N, num_features) are 0 or 1. The labels are the blocks.

    Raises
    ------
    InputError
        There are fewer nodes or columns than blocks, or too few pairs of nodes for the edges.
    """
    num_nodes, num_blocks = config.num_nodes, config.num_blocks
    for name in ("num_nodes", "num_features"):
        if getattr(config, name) < num_blocks:
            raise InputError(
                f"data.synthetic.{name}={getattr(config, name)}: expected at least one for each of "
                f"the {num_blocks} blocks"
            )
    rng = stream_rng(config.seed, Stream.SYNTHETIC_GRAPH)
    # The nodes sorted by block have places 0..N-1. Place p is node node[p], and block b has the
    # places start[b] to start[b + 1] - 1.
    node = rng.permutation(num_nodes)
    start = np.arange(num_blocks + 1) * num_nodes // num_blocks
    block = np.repeat(np.arange(num_blocks), np.diff(start))
    keys = _draw_pairs(config, start, block, rng)
    u, v = np.divmod(keys, num_nodes)
    graph, _ = Graph.from_edges(num_nodes, node[u], node[v])
    labels = np.empty(num_nodes, dtype=np.int64)
    labels[node] = block
    return AttributedGraph(graph, _draw_words(config, labels, rng), labels)


def _draw_pairs(
    config: SyntheticConfig, start: np.ndarray, block: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw distinct pairs of places u < v; the result contains their keys ``u * N + v``."""
    num_nodes = config.num_nodes
    num_edges = round(num_nodes * config.average_degree / 2)
    keys = np.empty(0, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        missing = num_edges - len(keys)
        if not missing:
            return keys
        # The first end is any node. The other end is any node, or one in the block of the first.
        count = missing + missing // 8 + 16
        u = rng.integers(num_nodes, size=count)
        mixed = rng.random(count) < config.mixing
        low = np.where(mixed, 0, start[block[u]])
        high = np.where(mixed, num_nodes, start[block[u] + 1])
        v = rng.integers(low, high)
        drawn = np.minimum(u, v) * num_nodes + np.maximum(u, v)
        # Keep the first num_edges distinct draws in the order of drawing. In the order of keys,
        # pairs with small keys would be preferred.
        keys = np.concatenate([keys, drawn[u != v]])
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])][:num_edges]
    raise InputError(
        f"data.synthetic: {num_edges} distinct edges do not fit {num_nodes} nodes in "
        f"{config.num_blocks} blocks at mixing={config.mixing}: lower average_degree"
    )


def _draw_words(
    config: SyntheticConfig, labels: np.ndarray, rng: np.random.Generator
) -> sp.csr_matrix:
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

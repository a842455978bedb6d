"""Other tools for clustering a graph without features, and the process that runs one of them.

Each function takes the adjacency as scipy CSR (N, N), symmetric, entries 1, no loops, the number
of clusters K and a seed, and returns int64 labels (N,). Methods that choose the number of clusters
themselves take K and do not read it. igraph and Infomap are optional:
``pip install 'user_dgl[rivals]'``.

``python rivals.py METHOD GRAPH.npz K SEED OUT.npz`` runs one method. The process imports neither
torch nor user_dgl, so that its time and memory are those of the method.
"""

import importlib.util
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

EXTRA = "pip install 'user_dgl[rivals]'"
# Resolutions between which `leiden` searches, and its number of trials. One halving of the range of
# logarithms a trial: 30 trials tell resolutions apart that differ by 1e-8 of themselves.
_RESOLUTIONS = (1e-4, 1e4)
_TRIALS = 30
# Share by which the number of clusters may differ from K; up to 99 clusters it must be K.
_TOLERANCE = 0.01
_INFOMAP_TRIALS = 5
# Above this number of eigenvectors, Lanczos takes many minutes where the spectrum has no gap, and
# subspace iteration takes its place.
_MANY_VECTORS = 200
_SUBSPACE_STEPS = 30
# k-means takes N K^2 multiplications an iteration. Above this number it starts once, not ten times.
_MANY_PRODUCTS = 10**9


def leiden(graph: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Leiden on modularity, with the resolution searched that gives ``num_clusters`` clusters.

    No cluster of Leiden joins components. If the graph has more than ``num_clusters`` components,
    the clusters of the largest component are counted, and each of the others keeps its own. The
    number may differ by 1 %. If no resolution that is tried gives it, the nearest one is taken.

    Source: Traag, Waltman and van Eck, From Louvain to Leiden, 2019 (igraph).
    """
    network = _igraph(graph)
    num_components, component = sp.csgraph.connected_components(graph, directed=False)
    counted = np.ones(graph.shape[0], dtype=bool)
    if num_components > num_clusters:
        counted = component == np.bincount(component).argmax()
    low, high = _RESOLUTIONS
    best, nearest = np.zeros(graph.shape[0], dtype=np.int64), np.inf
    for _ in range(_TRIALS):
        resolution = float(np.sqrt(low * high))
        labels = _leiden(network, resolution, seed)
        found = len(np.unique(labels[counted]))
        if abs(found - num_clusters) < nearest:
            best, nearest = labels, abs(found - num_clusters)
        if nearest <= _TOLERANCE * num_clusters:
            break
        low, high = (resolution, high) if found < num_clusters else (low, resolution)
    return best


def leiden_free(graph: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Leiden on modularity at resolution 1, with as many clusters as it finds."""
    return _leiden(_igraph(graph), 1.0, seed)


def louvain(graph: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Louvain on modularity at resolution 1, with as many clusters as it finds.

    Source: Blondel et al., Fast unfolding of communities in large networks, 2008 (igraph).
    """
    network = _igraph(graph)
    _seed_igraph(seed)
    return np.asarray(network.community_multilevel().membership, dtype=np.int64)


def infomap(graph: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Two-level Infomap, the best of five trials, with as many clusters as it finds.

    Source: Rosvall and Bergstrom, Maps of random walks on complex networks reveal community
    structure, 2008 (package infomap).
    """
    from infomap import Infomap

    # Infomap takes seeds from 1.
    search = Infomap(two_level=True, silent=True, seed=seed + 1, num_trials=_INFOMAP_TRIALS)
    search.add_nodes(range(graph.shape[0]))
    search.add_links(list(map(tuple, _pairs(graph).tolist())))
    modules = search.run().modules()
    return np.asarray([modules[node] for node in range(graph.shape[0])], dtype=np.int64)


def spectral(graph: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Spectral clustering: k-means of the K leading eigenvectors of ``D^-1/2 A D^-1/2``.

    Rows of the eigenvectors are scaled to norm 1. Small parts that hang on the graph by few edges,
    and small components, can take the leading eigenvectors; see `spectral_regularised`.

    Source: Ng, Jordan and Weiss, On spectral clustering, 2002 (SciPy, scikit-learn).
    """
    return _spectral(graph, num_clusters, seed, added=0.0)


def spectral_regularised(graph: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """`spectral`, with the mean degree added to each degree in D.

    Source: Qin and Rohe, Regularized spectral clustering under the degree-corrected stochastic
    blockmodel, 2013 (SciPy, scikit-learn).
    """
    return _spectral(graph, num_clusters, seed, added=graph.nnz / graph.shape[0])


@dataclass(frozen=True)
class Rival:
    """A method of the table.

    Attributes
    ----------
    cluster : callable
    package : str or None
        Optional package that it imports.
    name : str
        For the reader of the table.
    """

    cluster: Callable[[sp.csr_matrix, int, int], np.ndarray]
    package: str | None
    name: str


RIVALS = {
    "leiden": Rival(leiden, "igraph", "Leiden, resolution for K"),
    "leiden-free": Rival(leiden_free, "igraph", "Leiden"),
    "louvain": Rival(louvain, "igraph", "Louvain"),
    "infomap": Rival(infomap, "infomap", "Infomap"),
    "spectral": Rival(spectral, None, "spectral + k-means"),
    "spectral-regularised": Rival(spectral_regularised, None, "regularised spectral + k-means"),
}


def lacks(method: str) -> str | None:
    """Message where the package of a method is not installed, else None."""
    package = RIVALS[method].package if method in RIVALS else None
    if package is None or importlib.util.find_spec(package) is not None:
        return None
    return f"{method} needs the package {package}: {EXTRA}"


def read_graph(file: Path) -> sp.csr_matrix:
    """Read a graph that ``inputs.py`` has written."""
    with np.load(file) as arrays:
        indices, indptr = arrays["indices"], arrays["indptr"]
    ones = np.ones(len(indices), dtype=np.float32)
    return sp.csr_matrix((ones, indices, indptr), shape=(len(indptr) - 1,) * 2)


def main(arguments: list[str]) -> None:
    """Run one method and write its labels and its peak memory (10^6 bytes)."""
    method, graph, num_clusters, seed, out = arguments
    labels = RIVALS[method].cluster(read_graph(Path(graph)), int(num_clusters), int(seed))
    # Peak of the program alone: getrusage counts the size of the parent at the fork too.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    np.savez(out, labels=labels, peak_memory_mb=peak)


def _spectral(graph: sp.csr_matrix, num_clusters: int, seed: int, added: float) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import normalize

    degree = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel() + added
    scale = sp.diags(1 / np.sqrt(np.maximum(degree, 1e-12)))
    vectors = _leading_vectors(scale @ graph.astype(np.float64) @ scale, num_clusters, seed)
    starts = 1 if len(degree) * num_clusters**2 > _MANY_PRODUCTS else 10
    kmeans = KMeans(num_clusters, n_init=starts, random_state=seed)
    return kmeans.fit_predict(normalize(vectors)).astype(np.int64)


def _leading_vectors(operator: sp.csr_matrix, count: int, seed: int) -> np.ndarray:
    """Eigenvectors (N, count) of the largest eigenvalues, which are at most 1."""
    from scipy.sparse.linalg import eigsh
    from sklearn.utils.extmath import randomized_svd

    num_nodes = operator.shape[0]
    if count <= _MANY_VECTORS:
        start = np.random.default_rng(seed).standard_normal(num_nodes)
        return eigsh(operator, count, which="LA", v0=start)[1]
    # With I added no eigenvalue is negative, so that the largest ones have the largest modulus.
    shifted = (operator + sp.eye(num_nodes)).tocsr()
    return randomized_svd(shifted, count, n_iter=_SUBSPACE_STEPS, random_state=seed)[0]


def _pairs(graph: sp.csr_matrix) -> np.ndarray:
    """Undirected pairs (E, 2) of the graph, each once."""
    upper = sp.triu(graph, 1).tocoo()
    return np.stack([upper.row, upper.col], axis=1)


def _igraph(graph: sp.csr_matrix):
    import igraph

    return igraph.Graph(n=graph.shape[0], edges=_pairs(graph))


def _seed_igraph(seed: int) -> None:
    import igraph

    igraph.set_random_number_generator(random.Random(seed))


def _leiden(network, resolution: float, seed: int) -> np.ndarray:
    _seed_igraph(seed)
    found = network.community_leiden(
        objective_function="modularity", resolution=resolution, n_iterations=-1
    )
    return np.asarray(found.membership, dtype=np.int64)


if __name__ == "__main__":
    main(sys.argv[1:])

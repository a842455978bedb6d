"""A map of the embeddings in the plane."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

# With fewer points there are no neighbourhoods that t-SNE could preserve.
_LEAST_FOR_TSNE = 50


def plane(embedding: np.ndarray) -> tuple[np.ndarray, str]:
    """Map embeddings to the plane, the same way each time, and describe the map in a sentence.

    With 50 nodes or more the map is t-SNE of the leading principal components, started from the
    first two of them. With fewer nodes it consists of these two components.

    Parameters
    ----------
    embedding : (M, d)

    Returns
    -------
    ndarray (M, 2), str
    """
    if (embedding == embedding[0]).all():
        return np.zeros((len(embedding), 2)), "All embeddings are equal."
    size = min(50, *embedding.shape)
    with threadpool_limits(1):  # the order of sums, and so the picture, depends on the threads
        pca = PCA(size, svd_solver="full").fit(embedding)
        components = pca.transform(embedding)
        two = np.pad(components, ((0, 0), (0, max(0, 2 - size))))[:, :2]
        if len(embedding) < _LEAST_FOR_TSNE:
            share = 100 * pca.explained_variance_ratio_[:2].sum()
            return two, f"Two principal components, with {share:.0f}\u00a0% of the variance."
        start = two / two[:, 0].std() * 1e-4
        tsne = TSNE(init=start, max_iter=500, random_state=0, n_jobs=1)
        points = tsne.fit_transform(components)
    return points, "t-SNE: near nodes are alike; distances between groups say little."

"""Random features of nodes and random memberships in clusters."""

import scipy.sparse as sp
import torch

from user_dgl.features.matrix import FeatureMatrix


def random_features(num_nodes=20, density=0.2, seed=0):
    """Sparse features as a `FeatureMatrix` and as a dense tensor."""
    feat = sp.random(num_nodes, 9, density=density, random_state=seed, format="csr")
    return FeatureMatrix(feat, torch.float64), torch.from_numpy(feat.toarray())


def random_assignment(num_nodes=20, num_clusters=4, seed=0):
    """Memberships (N, K) whose rows add up to one."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(num_nodes, num_clusters, generator=generator, dtype=torch.float64)
    return logits.softmax(1)

"""First weights of the observed edges."""

import numpy as np
import scipy.sparse as sp
from graphs import empty_graph, random_graph

from user_dgl.cleaning.priors import prior_of
from user_dgl.config import StructureConfig


def _prior(graph, feat, **settings):
    feat = sp.csr_matrix(feat)
    config = StructureConfig(**settings)
    return prior_of(config, graph, feat, 0, "csr").weight


def test_feature_cosine_prior_equals_its_formula(monkeypatch):
    monkeypatch.setattr("user_dgl.features.cosine._BLOCK_VALUES", 7)
    graph = random_graph()
    feat = sp.random(20, 6, density=0.5, random_state=0).toarray().astype(np.float32)
    norm = np.linalg.norm(feat, axis=1, keepdims=True)
    unit = np.divide(feat, norm, out=np.zeros_like(feat), where=norm > 0)
    cosine = (unit @ unit.T)[graph.src.numpy(), graph.dst.numpy()]
    expected = np.clip(cosine / cosine.mean(), 0.05, 4.0) ** 0.25
    found = _prior(graph, feat, prior="feature_cosine", prior_power=0.25)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert str(found.dtype) == "torch.float32"
    assert found.std() > 0


def test_prior_without_use_is_uniform():
    graph, feat = random_graph(), np.ones((20, 2), dtype=np.float32)
    assert (_prior(graph, feat) == 1).all()
    assert (_prior(graph, 0 * feat, prior="feature_cosine") == 1).all()
    assert len(_prior(empty_graph(20), feat, prior="feature_cosine")) == 0

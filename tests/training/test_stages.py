"""The stages before training: held-out pairs reach none of them."""

import numpy as np
import pytest

from user_dgl.cleaning.priors import prior_of
from user_dgl.clustering.num_clusters import num_clusters_curve
from user_dgl.config import SyntheticConfig, default_config, load_config
from user_dgl.data import block_model
from user_dgl.training.stages import prepare


@pytest.mark.parametrize("critic", ["critic", "link_critic"])
def test_the_curve_of_the_number_of_clusters_rests_on_weights_without_held_out_pairs(critic):
    data = block_model(SyntheticConfig(num_nodes=200, num_blocks=3))
    settings = [f"structure.prior={critic}", "model.num_clusters=auto", "seed=2"]
    config = load_config(default_config(), settings)
    # Half of all pairs that are no edges: a critic that took them as random pairs is another one.
    u, v = np.triu_indices(200, 1)
    others = np.setdiff1d(u * 200 + v, data.graph.keys)
    held_out = np.random.default_rng(0).choice(others, len(others) // 2, replace=False)

    def curve(*excluded):
        prior = prior_of(config.structure, data.graph, data.feat, 2, "csr", *excluded)
        return num_clusters_curve(data.graph, prior.weight, data.feat, config.model, 2, "csr")

    found = prepare(data.graph, data.feat, config, lambda line: None, held_out)
    assert found.num_clusters_curve == curve(held_out)
    assert found.num_clusters_curve != curve()

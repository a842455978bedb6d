"""DGI beside a dense oracle, and the corrupted graph that it learns to tell from the real one."""

import math

import numpy as np
import scipy.sparse as sp
import torch
from dense_baselines import (
    Adam,
    adjacency_of,
    assert_terms,
    assert_weights,
    draws_of,
    graph_infomax,
    normalised,
    tiny_trainer,
    train_epochs,
    two_cliques,
    weights_of,
)

WIDTH = "baseline.hidden_feats=[6]"


def test_loss_and_steps_are_those_of_the_paper():
    trainer = tiny_trainer("dgi", WIDTH, "baseline.weight_decay=0.01")
    weights = weights_of(trainer.method)
    smooth = normalised(adjacency_of(trainer.graph))
    feat = torch.from_numpy(trainer.feat.toarray())
    adam = Adam(weights.values(), 0.02, 0.01)
    expected = []
    for epoch in range(3):
        draws_of(trainer, epoch)
        loss, _, _ = graph_infomax(smooth, feat, weights.values())
        expected.append({"mutual_information": adam.step(loss)})
    assert_terms(train_epochs(trainer, 3), expected)
    assert_weights(trainer.method, weights)
    _, hidden, _ = graph_infomax(smooth, feat, weights.values())
    torch.testing.assert_close(trainer.method.embed(), hidden)


def test_the_corrupted_graph_has_the_same_rows_at_other_nodes():
    trainer = tiny_trainer("dgi", WIDTH)
    method = trainer.method
    # Without edges an embedding depends on the features of its node alone.
    alone = tiny_trainer("dgi", WIDTH, graph=type(trainer.graph).from_edges(12, [], [])[0]).method
    for each, keeps_rows in ((alone, True), (method, False)):
        torch.manual_seed(0)
        hidden, corrupted = (part.detach().numpy() for part in each.with_corrupted())
        np.testing.assert_allclose(hidden, each.embed().detach().numpy())
        assert (np.abs(hidden - corrupted).max(1) > 1e-6).mean() > 0.7
        same_rows = np.allclose(np.sort(hidden, 0), np.sort(corrupted, 0))
        assert same_rows == keeps_rows


def test_equal_features_leave_nothing_to_tell_apart():
    """Shuffled equal rows are the same graph, and no discriminator is better than chance."""
    graph, feat = two_cliques()
    equal = sp.csr_matrix(np.ones((12, 3)))
    for given, learns in ((feat, True), (equal, False)):
        rows = train_epochs(tiny_trainer("dgi", WIDTH, graph=graph, feat=given), 80)
        assert (rows[-1]["mutual_information"] < 0.5 * math.log(2)) == learns
        assert learns or min(row["total"] for row in rows) >= math.log(2) - 1e-12

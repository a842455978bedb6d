"""Models that USER supports by a loss of their own."""

import numpy as np
import pytest
import torch
from graphs import dense, random_graph
from scipy.sparse import random as random_matrix
from torch.nn.functional import softplus

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.config.model import ENCODERS
from user_dgl.data import block_model
from user_dgl.encoders.dgi import DGI, PReLU
from user_dgl.encoders.sage import SAGE
from user_dgl.encoders.vgae import VGAE
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagation
from user_dgl.losses.discriminators import Discriminator, GraphSummary, gaussian_divergence
from user_dgl.training.hooks import Hooks
from user_dgl.training.trainer import Trainer

TERMS = {
    "vgae": {"reconstruction", "divergence"},
    "arga": {"reconstruction", "generator", "discriminator"},
    "dgi": {"mutual_information"},
    "sage": {"neighbours"},
}
SMALL = SyntheticConfig(num_nodes=200, num_blocks=3, average_degree=12, mixing=0.1)


def fit(encoder, more=(), checkpoint=None, **callbacks):
    data, rows = block_model(SMALL), []
    overrides = [f"model.encoder={encoder}", "model.num_clusters=3", "model.hidden_feats=[32,16]"]
    overrides += ["train.epochs=40", "train.restarts=2", *more]
    config = load_config(None, overrides)
    hooks = Hooks(record=rows.append, shows_progress=False, **callbacks)
    trainer = Trainer(data.graph, data.feat, config, hooks)
    return trainer.fit(checkpoint), rows, trainer


@pytest.mark.parametrize("encoder", TERMS)
def test_a_supported_model_learns_by_its_own_loss_on_the_learned_graph(encoder):
    result, rows, trainer = fit(encoder, ["loss.npsi_weight=0"])
    own = {f"supporting_{name}" for name in TERMS[encoder]}
    assert own == set(result.loss) - {"total"}
    if encoder == "arga":
        # The players of a game may lose; but rows come to be spread more like the prior.
        _, _, without = fit(encoder, ["loss.npsi_weight=0", "loss.supporting_weight=0"])
        with torch.no_grad():
            spread, usual = (t.model(t.features).hidden[0].std() for t in (trainer, without))
        assert 1.5 * usual < spread < 1.5
    else:
        (watched,) = own - {"supporting_divergence"}
        assert np.mean([row[watched] for row in rows[-3:]]) < rows[0][watched]
    # A' is what the encoder reads, so the model's own loss moves it.
    assert not np.allclose(result.weight, 1)
    result, _, _ = fit(encoder, ["loss.supporting_weight=0.1"])
    assert clustering_metrics(block_model(SMALL).labels, result.clusters)["nmi"] > 50


@pytest.mark.parametrize("encoder", TERMS)
def test_the_head_reads_rows_of_mean_0_and_the_embedding_is_as_its_own_loss_made_it(encoder):
    _, _, trainer = fit(encoder, ["train.epochs=1", "train.lr=1e-6", "model.head=linear"])
    seen = []
    trainer.model.heads[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        state = trainer.model.eval()(trainer.features)
    torch.testing.assert_close(seen[0].mean(0), torch.zeros(16), atol=1e-4, rtol=0)
    hidden = state.hidden[0]
    assert hidden.mean(0).abs().max() > 1e-3
    torch.testing.assert_close(trainer.model.embeddings(state)[0], hidden)


@pytest.mark.parametrize("encoder", TERMS)
def test_its_weight_scales_the_terms_and_0_leaves_them_out(encoder):
    halves = [fit(encoder, ["train.epochs=1", f"loss.supporting_weight={w}"])[1] for w in (1, 3)]
    for name in TERMS[encoder]:
        one, three = (rows[0][f"supporting_{name}"] for rows in halves)
        assert three == pytest.approx(3 * one)
    result, _, _ = fit(encoder, ["train.epochs=1", "loss.supporting_weight=0"])
    assert set(result.loss) == {"total", "npsi", "npsi_observed"}


@pytest.mark.parametrize("encoder", TERMS)
def test_resumed_equals_uninterrupted(encoder):
    states = []
    more = ["train.epochs=8", "train.checkpoint_every=4"]
    whole, _, _ = fit(encoder, more, save=lambda state: states.append(_copied(state)))
    resumed, _, _ = fit(encoder, more, states[1])
    np.testing.assert_array_equal(whole.embedding, resumed.embedding)
    np.testing.assert_array_equal(whole.weight, resumed.weight)


def _copied(state):
    """A state as a file would hold it: training goes on in the tensors themselves."""
    if isinstance(state, torch.Tensor):
        return state.clone()
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_copied(value) for value in state]
    return state


@pytest.mark.parametrize("encoder", TERMS)
def test_parts_of_a_graph_are_refused(encoder):
    config = load_config(None, [f"model.encoder={encoder}", "model.observed_mix=0"])
    with pytest.raises(InputError, match=rf"needs model\.encoder=gcn or gae, got {encoder}"):
        config.check_distributed()


def test_a_weight_without_a_loss_is_said_to_have_no_effect():
    (line,) = load_config(None, ["loss.supporting_weight=2"]).inert_settings()
    assert line == "loss.supporting_weight=2.0 has no effect with model.encoder=gcn"


# ---------------------------------------------------------------------------------------------


def _problem():
    graph = random_graph()
    torch.manual_seed(0)
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    feat = random_matrix(20, 9, density=0.3, random_state=0, format="csr")
    features = FeatureMatrix(feat, torch.float64)
    a = dense(graph, weight) + torch.eye(20, dtype=torch.float64)
    scale = a.sum(1).rsqrt()
    s = scale[:, None] * a * scale
    return Propagation.of(graph, weight, "csr"), features, s, torch.from_numpy(feat.toarray())


def test_dgi_equals_its_formula_also_of_shuffled_features_and_masked_columns():
    propagation, features, s, x = _problem()
    encoder = DGI(9, (5, 4)).double()
    with torch.no_grad():
        for bias in encoder.biases:
            bias.uniform_(-1, 1)

    def expected(x):
        for weight, bias in zip(encoder.weights, encoder.biases, strict=True):
            h = s @ x @ weight + bias
            x = torch.where(h > 0, h, 0.25 * h)
        return x

    torch.testing.assert_close(encoder(propagation, features), expected(x))
    order = torch.randperm(20)
    shuffled = encoder.convolve(propagation, encoder.project(features)[order])
    torch.testing.assert_close(shuffled, expected(x[order]))
    kept = (torch.rand(9) > 0.5).double()
    found = encoder.convolve(propagation, encoder.project(features, kept))
    torch.testing.assert_close(found, expected(x * kept))


@pytest.mark.parametrize("slope", [0.25, 0.0, -0.5])
def test_prelu_has_torchs_values_and_gradients(slope):
    found, expected = PReLU(init=slope).double(), torch.nn.PReLU(init=slope).double()
    x = torch.tensor([[-2.0, 0.0, 3.0], [1.0, -1.0, -0.1]], dtype=torch.float64).requires_grad_()
    cotangent = torch.randn(3, 2, dtype=torch.float64).t()
    torch.testing.assert_close(found(x), expected(x))
    for module in (found, expected):
        module(x).backward(cotangent)
    torch.testing.assert_close(found.weight.grad, expected.weight.grad)
    grads = [torch.autograd.grad(module(x), x, cotangent)[0] for module in (found, expected)]
    torch.testing.assert_close(*grads)


def test_sage_equals_its_formula():
    propagation, features, s, x = _problem()
    encoder = SAGE(9, (5, 4), 0.0).double()
    mean = s / s.sum(1, keepdim=True)
    hidden = torch.relu(x @ encoder.own[0] + mean @ x @ encoder.neighbours[0])
    hidden = hidden @ encoder.own[1] + mean @ hidden @ encoder.neighbours[1]
    expected = hidden / hidden.norm(dim=1, keepdim=True).clamp_min(1e-12)
    torch.testing.assert_close(encoder(propagation, features), expected)


def test_vgae_draws_in_training_around_the_means():
    propagation, features, _, _ = _problem()
    encoder = VGAE(9, (5, 3), 0.0).double()
    mean, log_std = encoder.moments(propagation, features)
    draws = torch.stack([encoder(propagation, features) for _ in range(2000)])
    torch.testing.assert_close(draws.mean(0), mean, atol=0.15, rtol=0)
    torch.testing.assert_close(draws.std(0), log_std.exp(), atol=0, rtol=0.15)
    torch.testing.assert_close(encoder.eval()(propagation, features), mean)


def test_vgae_is_finite_for_features_of_any_scale():
    propagation, features, _, _ = _problem()
    encoder = VGAE(9, (5, 3), 0.0).double()
    with torch.no_grad():
        encoder.weights[-1] *= 1e6
    mean, log_std = encoder.moments(propagation, features)
    assert log_std.max() == 10
    assert torch.isfinite(gaussian_divergence(mean, log_std)).all()


def test_discriminators_tell_real_from_fake():
    torch.manual_seed(0)
    hidden, corrupted = torch.randn(50, 4), torch.randn(50, 4)
    summary = GraphSummary(4)
    s = torch.sigmoid(hidden.mean(0))
    real, fake = ((h @ summary.weight @ s) for h in (hidden, corrupted))
    expected = (softplus(-real).sum() + softplus(fake).sum()) / 100
    torch.testing.assert_close(summary.loss(hidden, corrupted), expected)
    # Rows far from the prior are told from it after a few steps.
    discriminator, far = Discriminator(4), hidden + 5
    optimizer = torch.optim.Adam(discriminator.parameters(), lr=0.01)
    first = discriminator.loss(far).item()
    for _ in range(50):
        optimizer.zero_grad()
        discriminator.loss(far).backward()
        optimizer.step()
    assert discriminator.loss(far).item() < 0.2 * first


def test_deception_moves_the_rows_and_not_the_discriminator():
    torch.manual_seed(0)
    discriminator, hidden = Discriminator(4), torch.randn(50, 4, requires_grad=True)
    loss = discriminator.deception(hidden)
    torch.testing.assert_close(loss, softplus(-discriminator(hidden)).mean())
    loss.backward()
    assert hidden.grad.abs().sum() > 0
    assert all(part.grad is None for part in discriminator.parameters())


def test_every_encoder_is_a_choice():
    for name, traits in ENCODERS.items():
        head = "graph_conv" if traits.learns else "centroid"
        more = ["model.observed_mix=0", f"model.head={head}", f"model.encoder={name}"]
        assert load_config(None, more).model.encoder == name

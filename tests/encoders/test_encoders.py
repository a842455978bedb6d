"""Encoders and the model against dense formulas."""

import pytest
import scipy.sparse as sp
import torch
from graphs import GRAPHS, dense, random_graph

from user_dgl.config import ModelConfig
from user_dgl.encoders.dropout import draw_by
from user_dgl.encoders.gae import GAE
from user_dgl.encoders.gcn import GCN, InputBatchNormLinear
from user_dgl.encoders.smooth import Smooth
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.ops import ENGINES
from user_dgl.graph.propagation import Propagation
from user_dgl.model import USER
from user_dgl.structure.candidates import merge_candidates
from user_dgl.structure.learned_adjacency import LearnedAdjacency


def _normalized(a):
    """D^-1/2 (A + I) D^-1/2."""
    a = a + torch.eye(len(a), dtype=a.dtype)
    scale = a.sum(1).rsqrt()
    return scale[:, None] * a * scale


def _features(num_nodes=20, density=0.2):
    feat = sp.random(num_nodes, 9, density=density, random_state=0, format="csr")
    return FeatureMatrix(feat, torch.float64), torch.from_numpy(feat.toarray())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GRAPHS)
def test_propagation_equals_the_dense_normalisation(name, engine):
    graph = GRAPHS[name]
    weight = torch.rand(graph.num_edges, dtype=torch.float64, requires_grad=True)
    x = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    found = Propagation.of(graph, weight, engine)(x)
    expected = _normalized(dense(graph, weight)) @ x
    torch.testing.assert_close(found, expected)
    if graph.num_edges:
        (got,) = torch.autograd.grad(found.square().sum(), weight)
        (want,) = torch.autograd.grad(expected.square().sum(), weight)
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("density", [0.2, 0.9])
def test_input_batchnorm_equals_torchs_without_densifying(density):
    features, x = _features(density=density)
    layer = InputBatchNormLinear(9, 4).double()
    with torch.no_grad():
        layer.gamma.uniform_(0.5, 2)
        layer.beta.uniform_(-1, 1)
    norm = torch.nn.BatchNorm1d(9).double().train()
    norm.load_state_dict({**norm.state_dict(), "weight": layer.gamma, "bias": layer.beta})
    expected = norm(x) @ layer.linear.weight.t()
    found = layer(features)
    torch.testing.assert_close(found, expected)
    mine = torch.autograd.grad(found.square().sum(), list(layer.parameters()))
    theirs = torch.autograd.grad(
        expected.square().sum(), [norm.weight, norm.bias, layer.linear.weight]
    )
    for got, want in zip(mine, theirs, strict=True):
        torch.testing.assert_close(got, want)


def test_gcn_equals_the_dense_layers():
    graph, (features, x) = random_graph(), _features()
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    encoder = GCN(9, (6, 5), dropout=0.5).double().eval()
    s = _normalized(dense(graph, weight))

    def batch_norm(h):
        return (h - h.mean(0)) / (h.var(0, unbiased=False) + 1e-5).sqrt()

    hidden = s @ (batch_norm(x) @ encoder.first.linear.weight.t())
    hidden = batch_norm(torch.relu(hidden + encoder.biases[0]))
    hidden = s @ (hidden @ encoder.linears[0].weight.t())
    hidden = batch_norm(torch.relu(hidden + encoder.biases[1]))
    torch.testing.assert_close(encoder(Propagation.of(graph, weight, "csr"), features), hidden)


def test_gae_equals_the_dense_layers():
    graph, (features, x) = random_graph(), _features()
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    encoder = GAE(9, (6, 5), dropout=0.5).double().eval()
    s = _normalized(dense(graph, weight))
    expected = s @ (torch.relu(s @ x @ encoder.weights[0]) @ encoder.weights[1])
    torch.testing.assert_close(encoder(Propagation.of(graph, weight, "csr"), features), expected)


def test_smooth_has_rows_of_norm_1_where_there_is_something_to_smooth():
    graph = random_graph()
    weight = torch.rand(graph.num_edges, dtype=torch.float64, requires_grad=True)
    points = torch.randn(20, 4, dtype=torch.float64)
    points[-1] = 0  # of a node without edges
    encoder = Smooth(points, hops=3, self_share=0.2)
    s = _normalized(dense(graph, weight))
    smoothed = 0.2 * points + 0.8 / 3 * (s @ points + s @ s @ points + s @ s @ s @ points)
    length = smoothed.norm(dim=1, keepdim=True)
    expected = smoothed / length.where(length > 0, torch.ones_like(length))
    found = encoder(Propagation.of(graph, weight, "csr"), _features()[0])
    torch.testing.assert_close(found, expected)
    assert encoder.out_feats == 4
    cotangent = torch.randn(20, 4, dtype=torch.float64)
    (got,) = torch.autograd.grad(found, weight, cotangent)
    (want,) = torch.autograd.grad(expected[:-1], weight, cotangent[:-1])
    torch.testing.assert_close(got, want)


def _model(mix=0.5, head="graph_conv", replicas=1, shared=True, **settings):
    graph = random_graph()
    pairs, observed = merge_candidates(
        graph, [(torch.arange(5).numpy(), torch.arange(9, 14).numpy())]
    )
    weight = torch.rand(1 if shared else replicas, pairs.num_edges, dtype=torch.float64) + 0.5
    structure = LearnedAdjacency(pairs, observed, weight)
    config = ModelConfig(num_clusters=3, hidden_feats=(6,), observed_mix=mix, head=head, **settings)
    return graph, USER(structure, 9, config, "csr", replicas).double()


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_mixture_equals_the_authors_dense_form(mix):
    graph, model = _model(mix)
    (weight,) = model.structure()
    pairs = model.structure.graph

    def without_diagonal(a):
        return a - torch.diag(a.diagonal())

    learned = _normalized(dense(pairs, weight))
    if mix:
        observed = _normalized(dense(graph, torch.ones(graph.num_edges, dtype=torch.float64)))
        learned = _normalized(without_diagonal(mix * observed + (1 - mix) * learned))
    x = torch.randn(20, 4, dtype=torch.float64)
    torch.testing.assert_close(model.propagation(weight)(x), learned @ x)


@pytest.mark.parametrize("head", ["graph_conv", "linear"])
def test_assignment_and_embedding(head):
    _, model = _model(head=head)
    model.eval()
    features, _ = _features()
    state = model(features)
    (embedding,) = model.embeddings(state)
    expected = torch.softmax(model.heads[0](embedding), 1)
    torch.testing.assert_close(state.assignment[:, 0], expected)
    assert embedding.shape == (20, 6)
    if head == "linear":
        assert embedding is state.hidden[0]


def test_dropout_acts_in_training_only():
    _, model = _model(dropout=0.5, logit_dropout=0.5)
    features, _ = _features()
    model.train()
    assert torch.equal(model(features).assignment, model(features).assignment)
    first = model(features).assignment
    draw_by(model, seed=0, epoch=1)
    assert not torch.equal(model(features).assignment, first)
    model.eval()
    assert torch.equal(model(features).assignment, model(features).assignment)


def test_dropout_before_the_head():
    _, model = _model(dropout=0.999999, logit_dropout=0.0)
    features, _ = _features()
    model.train()
    expected = torch.softmax(model.heads[0].bias, 0).expand(20, 3)
    torch.testing.assert_close(model(features).assignment[:, 0], expected)


def test_dropout_on_the_logits_leaves_the_clusters_to_the_logits():
    _, model = _model(dropout=0.0, logit_dropout=0.999999)
    features, _ = _features()
    model.train()
    state = model(features)
    torch.testing.assert_close(state.assignment, torch.full_like(state.assignment, 1 / 3))
    model.eval()
    assert torch.equal(state.clusters, model(features).assignment.argmax(2))
    assert len(state.clusters.unique()) > 1


@pytest.mark.parametrize("encoder", [GCN, GAE])
def test_dropout_between_layers(encoder):
    graph, (features, _) = random_graph(), _features()
    encoder = encoder(9, (6, 5), dropout=0.999999).double().train()
    weight = torch.ones(graph.num_edges, dtype=torch.float64)
    hidden = encoder(Propagation.of(graph, weight, "csr"), features)
    assert (hidden == 0).all()  # nothing reaches the second layer
    encoder.eval()
    assert (encoder(Propagation.of(graph, weight, "csr"), features) != 0).any()


@pytest.mark.parametrize("encoder", ["gcn", "gae"])
@pytest.mark.parametrize("head", ["graph_conv", "linear"])
@pytest.mark.parametrize("shared", [True, False])
def test_replicas_are_models_of_their_own(encoder, head, shared):
    """Values and gradients of three replicas equal those of three single models."""
    _, model = _model(0.5, head, 3, shared, encoder=encoder)
    features, _ = _features()
    model.eval()
    state = model(features)
    pull, gradients = torch.randn(3, 20, 3, dtype=torch.float64), []
    (state.assignment * pull.transpose(0, 1)).sum().backward()
    for one in range(3):
        _, single = _model(0.5, head, encoder=encoder)
        single.eval()
        theta = model.structure.theta[0 if shared else one]
        own = {"structure.theta": theta[None], "structure.observed": model.structure.observed}
        for part in ("encoders", "heads"):
            for name, value in getattr(model, part)[one].state_dict().items():
                own[f"{part}.0.{name}"] = value
        single.load_state_dict(own)
        expected = single(features)
        torch.testing.assert_close(state.assignment[:, one], expected.assignment[:, 0])
        assert torch.equal(state.clusters[:, one], expected.clusters[:, 0])
        embedding = single.embeddings(expected)[0]
        torch.testing.assert_close(model.embeddings(state)[one], embedding)
        (expected.assignment[:, 0] * pull[one]).sum().backward()
        for mine, theirs in zip(
            model.encoders[one].parameters(), single.encoders[0].parameters(), strict=True
        ):
            torch.testing.assert_close(mine.grad, theirs.grad)
        gradients.append(single.structure.theta.grad)
    gradients = torch.cat(gradients)  # (R, P)
    expected = gradients.sum(0, keepdim=True) if shared else gradients
    torch.testing.assert_close(model.structure.theta.grad, expected)


def test_replicas_start_apart_and_the_first_as_a_single_model_would():
    torch.manual_seed(0)
    _, single = _model()
    torch.manual_seed(0)
    _, several = _model(replicas=3)
    weights = [encoder.first.linear.weight for encoder in several.encoders]
    biases = [head.bias for head in several.heads]
    assert torch.equal(weights[0], single.encoders[0].first.linear.weight)
    assert torch.equal(biases[0], single.heads[0].bias)
    for drawn in (weights, biases):
        assert not any(torch.equal(drawn[i], drawn[i - 1]) for i in range(3))
        spread = torch.stack(drawn).abs().amax(tuple(range(1, drawn[0].dim() + 1)))
        assert spread.min() > 0.5 * spread.max()  # one distribution


def test_every_parameter_gets_a_gradient():
    _, model = _model()
    features, _ = _features()
    model.eval()
    model(features).assignment.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name

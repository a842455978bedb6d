"""The pairs that link prediction holds out."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import random_graph, with_random_weights

from user_dgl.config import LinksConfig, NoiseConfig
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.graph.pairs import draw_pairs
from user_dgl.links.split import split_links
from user_dgl.perturb import perturb


def pairs_of(pairs) -> set:
    return set(zip(*np.asarray(pairs).tolist(), strict=True))


def edges_of(graph) -> set:
    return pairs_of(np.stack([graph.src.numpy(), graph.dst.numpy()]))


def parts_of(split):
    """Held-out edges and non-edges of validation and test."""
    return [
        pairs_of(part.pairs[:, part.is_edge == kind])
        for part in (split.validation, split.test)
        for kind in (True, False)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_disjoint_and_make_up_the_graph(seed):
    graph = random_graph(80, 400)
    split = split_links(graph, LinksConfig(), seed)
    edges = edges_of(graph)
    parts = parts_of(split)
    assert [len(part) for part in parts] == [
        round(share * graph.num_edges) for share in (0.05, 0.05, 0.1, 0.1)
    ]
    for one, other in combinations([*parts, edges_of(split.training)], 2):
        assert not one & other
    assert edges_of(split.training) | parts[0] | parts[2] == edges
    # Against the whole graph: none of them is an edge that was held out.
    assert not (parts[1] | parts[3]) & edges
    assert all(u < v for part in parts for u, v in part)
    keys = split.held_out_keys
    assert len(np.unique(keys)) == len(keys) == sum(map(len, parts))


def test_same_seed_same_parts():
    graph = random_graph(80, 400)
    one, same, other = (split_links(graph, LinksConfig(), seed) for seed in (3, 3, 4))
    fixed = split_links(graph, LinksConfig(seed=3), 4)
    assert parts_of(one) == parts_of(same) == parts_of(fixed) != parts_of(other)


def test_every_edge_and_non_edge_is_as_likely():
    graph = Graph.from_edges(5, [0, 1, 2, 3, 0], [1, 2, 3, 4, 4])[0]
    config, draws = LinksConfig(validation_share=0.2, test_share=0.2), 2000
    counts = [{}, {}, {}, {}]
    for seed in range(draws):
        for count, part in zip(counts, parts_of(split_links(graph, config, seed)), strict=True):
            (pair,) = part
            count[pair] = count.get(pair, 0) + 1
    for count in counts:
        assert len(count) == 5
        # Chi-square with 4 degrees of freedom: exceeded with probability 0.001.
        assert sum((n - draws / 5) ** 2 / (draws / 5) for n in count.values()) < 18.5


def test_all_non_edges_of_a_dense_graph():
    ends = np.array(list(combinations(range(8), 2))).T
    graph = Graph.from_edges(8, *ends[:, 4:])[0]
    config = LinksConfig(validation_share=1 / 12, test_share=1 / 12)
    _, one, _, other = parts_of(split_links(graph, config, 0))
    assert one | other == pairs_of(ends[:, :4])
    with pytest.raises(InputError, match=r"6 non-edges wanted.*the graph has 4"):
        split_links(graph, LinksConfig(validation_share=1 / 12, test_share=1 / 6), 0)


def components_of(graph) -> int:
    return sp.csgraph.connected_components(graph.to_scipy(), directed=False)[0]


KEPT = LinksConfig(keep_connected=True)


@pytest.mark.parametrize("seed", range(5))
def test_held_out_edges_leave_the_components_as_they_are(seed):
    graph = random_graph(80, 120)  # sparse, with many nodes of one edge, and three without
    free, kept = (split_links(graph, config, seed) for config in (LinksConfig(), KEPT))
    assert components_of(free.training) > components_of(graph)  # the seeds do disconnect it
    assert components_of(kept.training) == components_of(graph)
    assert ((kept.training.degree == 0) == (graph.degree == 0)).all()
    sizes = [len(part) for part in parts_of(free)]
    assert [len(part) for part in parts_of(kept)] == sizes
    assert set.union(*parts_of(kept)[::2], edges_of(kept.training)) == edges_of(graph)


def test_an_edge_is_passed_over_only_if_it_would_disconnect():
    """The edges held out are the first of the order whose loss, one by one, leaves no pieces."""
    graph = random_graph(30, 50)
    config = LinksConfig(validation_share=0.0, test_share=0.2)
    # The share 0.9 leaves the order of almost all edges to be seen.
    long = LinksConfig(validation_share=0.0, test_share=0.9)
    order = split_links(graph, long, 0).test
    order = order.pairs[:, order.is_edge].T
    expected, left = [], graph.to_scipy().tolil()
    for u, v in order.tolist():
        left[u, v] = left[v, u] = 0
        if sp.csgraph.connected_components(left.tocsr(), directed=False)[0] > components_of(graph):
            left[u, v] = left[v, u] = 1
        else:
            expected.append((u, v))
    kept = split_links(graph, LinksConfig(0.0, 0.2, keep_connected=True), 0).test
    wanted = round(config.test_share * graph.num_edges)
    assert pairs_of(kept.pairs[:, kept.is_edge]) == set(expected[:wanted])
    assert set(expected[:wanted]) != set(map(tuple, order[:wanted].tolist()))


def test_a_dense_graph_is_split_as_without_the_condition():
    graph = random_graph(40, 700)
    one, other = (parts_of(split_links(graph, config, 0)) for config in (LinksConfig(), KEPT))
    assert one == other


def test_weights_of_edges_do_not_decide_what_stays():
    graph = random_graph(80, 120)
    weighted = with_random_weights(graph)
    one, other = (split_links(each, KEPT, 0) for each in (graph, weighted))
    assert parts_of(one) == parts_of(other)
    assert other.training.weight is not None


def test_a_tree_has_no_edge_to_hold_out():
    path = Graph.from_edges(40, np.arange(39), np.arange(1, 40))[0]
    with pytest.raises(InputError, match=r"6 edges to hold out, but 39 of 39 must stay"):
        split_links(path, KEPT, 0)
    nothing = LinksConfig(validation_share=0, test_share=0, keep_connected=True)
    assert split_links(path, nothing, 0).training.num_edges == 39
    assert split_links(Graph.from_edges(0, [], [])[0], KEPT, 0).training.num_edges == 0


def test_nothing_held_out():
    graph = random_graph()
    split = split_links(graph, LinksConfig(validation_share=0, test_share=0), 0)
    np.testing.assert_array_equal(split.training.keys, graph.keys)
    assert len(split.held_out_keys) == 0
    empty = split_links(Graph.from_edges(3, [], [])[0], LinksConfig(), 0)
    assert empty.training.num_edges == 0


def test_too_much_held_out():
    with pytest.raises(InputError, match="leave none to train on"):
        split_links(random_graph(), LinksConfig(validation_share=0.5, test_share=0.5), 0)


def test_large_graph():
    """N^2 is 4e10 here: only what is linear in edges comes back."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(200_000, *rng.integers(0, 200_000, (2, 1_000_000)))[0]
    split = split_links(graph, LinksConfig(), 0)
    assert (graph.positions(np.sort(split.held_out_keys)) >= 0).sum() * 2 == len(
        split.held_out_keys
    )
    noise = NoiseConfig(kind="random_flip", rate=0.5)
    noisy = perturb(split.training, noise, 0, None, split.held_out_keys)
    assert (noisy.graph.positions(split.held_out_keys) < 0).all()
    assert noisy.num_added + noisy.num_removed == round(0.5 * split.training.num_edges)


def test_excluded_pairs_are_never_drawn_and_all_others_are():
    excluded = np.array([0 * 6 + 1, 2 * 6 + 5, 4 * 6 + 5, 0 * 6 + 5])
    drawn = draw_pairs(6, 11, excluded, np.random.default_rng(0))
    keys = {u * 6 + v for u, v in combinations(range(6), 2)}
    assert set(drawn.tolist()) == keys - set(excluded.tolist())


def test_pairs_outside_the_excluded_are_as_likely():
    excluded, draws = np.array([0 * 5 + 2, 3 * 5 + 4]), 4000
    counts = {}
    for seed in range(draws):
        for key in draw_pairs(5, 2, excluded, np.random.default_rng(seed)).tolist():
            counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 8
    # Chi-square with 7 degrees of freedom (less, as pairs are drawn two at a time).
    assert sum((n - draws / 4) ** 2 / (draws / 4) for n in counts.values()) < 24.3


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_flips_are_counted_on_the_training_edges_and_leave_held_out_pairs(rate, seed, tmp_path):
    graph = random_graph(40, 200)
    split = split_links(graph, LinksConfig(), seed)
    noise = NoiseConfig(kind="random_flip", rate=rate)
    noisy = perturb(split.training, noise, seed, tmp_path, split.held_out_keys)
    flipped = edges_of(split.training) ^ edges_of(noisy.graph)
    assert len(flipped) == round(rate * split.training.num_edges)
    held_out = set.union(*parts_of(split))
    assert not held_out & flipped
    assert not held_out & edges_of(noisy.graph)


def test_more_flips_than_there_are_pairs(tmp_path):
    graph = random_graph(10, 20)
    split = split_links(graph, LinksConfig(), 0)
    noise = NoiseConfig(kind="random_flip", rate=9.0)
    with pytest.raises(InputError, match="pairs outside the held-out ones: lower the rate"):
        perturb(split.training, noise, 0, tmp_path, split.held_out_keys)


def test_a_stored_graph_is_taken_without_the_held_out_pairs(tmp_path):
    graph = random_graph(40, 200)
    split = split_links(graph, LinksConfig(), 0)
    everything = Graph.from_edges(40, *np.array(list(combinations(range(40), 2))).T)[0]
    sp.save_npz(tmp_path / "all.npz", everything.to_scipy())
    noise = NoiseConfig(kind="file", file="all.npz")
    noisy = perturb(split.training, noise, 0, tmp_path, split.held_out_keys)
    assert edges_of(noisy.graph) == edges_of(everything) - set.union(*parts_of(split))

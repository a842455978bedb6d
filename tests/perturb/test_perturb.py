"""Noise: uniform flips, and stored graphs with the counts of the published attacks."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from user_dgl.config import NoiseConfig, load_config
from user_dgl.data import largest_component, load_npz, load_planetoid
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.graph.pairs import pair_of_index
from user_dgl.perturb import perturb, random_flip, stored_graph
from user_dgl.perturb.stored import recipe_of, write_graph


def graph_of(num_nodes, *pairs):
    u, v = zip(*pairs, strict=True) if pairs else ((), ())
    return Graph.from_edges(num_nodes, u, v)[0]


def pairs_of(graph):
    return set(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))


def random_graph(num_nodes, num_edges, seed=0):
    rng = np.random.default_rng(seed)
    return Graph.from_edges(num_nodes, *rng.integers(0, num_nodes, (2, num_edges)))[0]


def test_index_enumerates_all_pairs():
    u, v = pair_of_index(np.arange(4950))
    assert set(zip(u.tolist(), v.tolist(), strict=True)) == set(combinations(range(100), 2))


def test_index_is_exact_where_floats_are_not():
    v = np.array([10**5, 10**7, 10**9, 3 * 10**9])
    first = v * (v - 1) // 2
    for index, expected in ((first, 0 * v), (first + v - 1, v - 1), (first - 1, v - 2)):
        found_u, found_v = pair_of_index(index)
        np.testing.assert_array_equal(found_u, expected)
        np.testing.assert_array_equal(found_v, v - (index < first))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_flips_are_distinct_pairs(rate):
    clean = random_graph(60, 200)
    noisy = random_flip(clean, rate, seed=1)
    before, after = pairs_of(clean), pairs_of(noisy.graph)
    assert len(before ^ after) == round(rate * clean.num_edges)
    assert noisy.num_added == len(after - before)
    assert noisy.num_removed == len(before - after)
    rows = zip(noisy.graph.src.tolist(), noisy.graph.dst.tolist(), strict=True)
    assert [pair not in before for pair in rows] == noisy.added.tolist()
    assert noisy.added.dtype == torch.bool
    # The clean graph is left as it was.
    assert pairs_of(clean) == before


def test_result_is_in_canonical_order():
    noisy = random_flip(random_graph(60, 200), 0.5, seed=1).graph
    rebuilt, _ = Graph.from_edges(60, noisy.src, noisy.dst)
    np.testing.assert_array_equal(noisy.src, rebuilt.src)
    np.testing.assert_array_equal(noisy.dst, rebuilt.dst)
    assert noisy.src.dtype == rebuilt.src.dtype


def test_all_pairs_flipped_is_the_complement():
    clean = graph_of(5, (0, 1), (2, 3))
    noisy = random_flip(clean, 5.0, seed=0)
    assert pairs_of(noisy.graph) == set(combinations(range(5), 2)) - pairs_of(clean)
    assert noisy.num_removed == 2


def test_every_set_of_pairs_is_equally_likely():
    # 2 of the 6 pairs of 4 nodes: 15 sets. Chi-square with 14 degrees of freedom.
    clean = graph_of(4, (0, 1), (1, 2), (2, 3), (0, 3))
    counts = {}
    draws = 3000
    for seed in range(draws):
        flipped = frozenset(pairs_of(clean) ^ pairs_of(random_flip(clean, 0.5, seed).graph))
        counts[flipped] = counts.get(flipped, 0) + 1
    assert len(counts) == 15
    expected = draws / 15
    statistic = sum((n - expected) ** 2 / expected for n in counts.values())
    assert statistic < 36.1  # exceeded with probability 0.001


def test_pairs_of_a_large_graph_are_equally_likely():
    clean = random_graph(200_000, 1_000_000)
    noisy = random_flip(clean, 0.5, seed=0)
    added = noisy.added.numpy()
    assert noisy.num_added + noisy.num_removed == round(0.5 * clean.num_edges)
    assert noisy.num_removed < 200  # about 25 are expected
    ends = np.concatenate([noisy.graph.src.numpy()[added], noisy.graph.dst.numpy()[added]])
    # Each tenth of the nodes holds a tenth of the ends.
    share = np.bincount(ends // 20_000, minlength=10) / len(ends)
    np.testing.assert_allclose(share, 0.1, atol=0.002)


def test_same_seed_same_flips():
    clean = random_graph(60, 200)
    one, same, other = (random_flip(clean, 0.3, seed).graph for seed in (4, 4, 5))
    assert pairs_of(one) == pairs_of(same) != pairs_of(other)


def test_rounding_is_pythons():
    clean = graph_of(6, (0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    noisy = random_flip(clean, 0.5, 0)
    assert noisy.num_added + noisy.num_removed == round(2.5)


def test_more_flips_than_pairs():
    clean = graph_of(3, (0, 1), (1, 2), (0, 2))
    with pytest.raises(InputError, match=r"rate=1\.4: 4 flips, but 3 nodes have only 3 pairs"):
        random_flip(clean, 1.4, 0)
    assert random_flip(clean, 1.0, 0).graph.num_edges == 0


def test_graph_without_edges():
    assert random_flip(graph_of(3), 0.5, 0).graph.num_edges == 0
    assert random_flip(graph_of(0), 0.5, 0).graph.num_edges == 0


def test_dispatch(tmp_path):
    clean = random_graph(30, 60)
    none = perturb(clean, NoiseConfig(), 0, tmp_path)
    assert none.graph is clean
    assert not none.added.any()
    assert (none.num_added, none.num_removed) == (0, 0)
    flips = NoiseConfig(kind="random_flip", rate=0.5)
    expected = pairs_of(random_flip(clean, 0.5, 7).graph)
    assert pairs_of(perturb(clean, flips, 7, tmp_path).graph) == expected
    fixed = NoiseConfig(kind="random_flip", rate=0.5, seed=7)
    assert pairs_of(perturb(clean, fixed, 0, tmp_path).graph) == expected


def test_stored_graph(tmp_path):
    clean = graph_of(4, (0, 1), (1, 2))
    matrix = sp.csr_matrix(([1, 1, 5], ([1, 3, 3], [2, 0, 3])), shape=(4, 4))
    sp.save_npz(tmp_path / "noisy.npz", matrix)
    for name in ("noisy.npz", str(tmp_path / "noisy.npz")):
        noisy = perturb(clean, NoiseConfig(kind="file", file=name), 0, tmp_path)
        assert pairs_of(noisy.graph) == {(1, 2), (0, 3)}
        assert noisy.added.tolist() == [True, False]
        assert (noisy.num_added, noisy.num_removed) == (1, 1)
        assert noisy.notes == (
            "noisy.npz: 1 self-loop entries dropped",
            "noisy.npz: directed: made symmetric, 2 entries give 2 undirected edges",
        )
    assert random_flip(clean, 0.5, 0).notes == ()
    larger = graph_of(5, (0, 1))
    noise = NoiseConfig(kind="file", file="noisy.npz")
    with pytest.raises(InputError, match=r"noisy\.npz: 4 nodes, .* 5: .*largest_component=true"):
        perturb(larger, noise, 0, tmp_path)
    with pytest.raises(InputError, match=r"none\.npz: not found \(data\.noise\.file=none\.npz\)"):
        perturb(clean, NoiseConfig(kind="file", file="none.npz"), 0, tmp_path)


def test_a_stored_graph_larger_than_the_clean_one(tmp_path):
    sp.save_npz(tmp_path / "noisy.npz", graph_of(5, (0, 1)).to_scipy())
    with pytest.raises(InputError, match=r"5 nodes, the clean graph has 3: make it again"):
        stored_graph(graph_of(3, (0, 1)), tmp_path / "noisy.npz")


def test_a_stored_graph_was_made_from_this_one(tmp_path):
    clean, other = graph_of(4, (0, 1), (1, 2)), graph_of(4, (0, 1), (1, 3))
    config = load_config(None, ["data.noise.kind=random_flip", "data.noise.rate=0.5"])
    file = tmp_path / "noisy.npz"
    for held_out in (None, np.array([7])):
        with open(file, "wb") as out:
            write_graph(out, graph_of(4, (0, 3)), recipe_of(config, clean))
        assert stored_graph(clean, file, held_out).num_removed == 2
    with pytest.raises(InputError, match=r"noisy\.npz: made from another graph .*again"):
        stored_graph(other, file)
    # A graph of which all pairs were known, where some are held out now.
    assert stored_graph(other, file, np.array([7])).num_removed == 2
    links = load_config(None, ["task=link_prediction"])
    with open(file, "wb") as out:
        write_graph(out, graph_of(4, (0, 3)), recipe_of(links, clean))
    with pytest.raises(InputError, match="other held-out pairs"):
        stored_graph(other, file, np.array([7]))


@pytest.mark.parametrize("weights", [[1.0, 1.0, 400.0], [2.0, 4.0, 6.0]])
def test_stored_weights_have_the_unit_of_the_clean_graph(tmp_path, weights):
    """The noise may remove an edge that weighs more than all others together."""
    clean = Graph.from_edges(5, [0, 1, 2], [1, 2, 3], weights)[0]
    noisy = Graph.from_edges(5, [0, 1, 3], [1, 2, 4])[0].weighted_like(
        clean, lambda number: np.full(number, clean.weight.min().item())
    )
    config = load_config(None, ["data.noise.kind=random_flip"])
    with open(tmp_path / "noisy.npz", "wb") as out:
        write_graph(out, noisy, recipe_of(config, clean))
    for held_out in (None, np.array([2 * 5 + 4])):
        read = stored_graph(clean, tmp_path / "noisy.npz", held_out).graph
        np.testing.assert_allclose(read.edge_weight, noisy.edge_weight, rtol=1e-6)
        assert read.unit == clean.unit


# Pairs added and removed against the clean graph, at 5, 10, 15, 20 and 25 %.
ATTACKED = {
    "cora": [(253, 0), (502, 4), (750, 10), (992, 21), (1222, 45)],
    "citeseer": [(183, 0), (365, 1), (539, 11), (720, 13), (899, 18)],
    "polblogs": [(735, 100), (1385, 286), (1962, 545), (2211, 1131), (2550, 1628)],
    "cora_ml": [(396, 3), (750, 48), (1040, 157), (1317, 279), (1646, 349)],
    "pubmed": [(2216, 0), (4432, 0), (6648, 0), (8864, 0), (11076, 5)],
}


@pytest.mark.parametrize("name", ATTACKED)
def test_published_attacks(name, data_folder):
    folder = data_folder("prognn_meta")
    if name == "pubmed":
        clean = load_planetoid(data_folder("planetoid"), name).graph
    else:
        clean = largest_component(load_npz(folder / f"{name}.npz")).graph
    for rate, expected in zip((0.05, 0.1, 0.15, 0.2, 0.25), ATTACKED[name], strict=True):
        noise = NoiseConfig(kind="file", file=f"{name}_meta_adj_{rate}.npz")
        noisy = perturb(clean, noise, 0, folder)
        assert (noisy.num_added, noisy.num_removed) == expected
        assert int(noisy.added.sum()) == expected[0]


def test_attacks_do_not_fit_the_whole_graph(data_folder):
    folder = data_folder("prognn_meta")
    whole = load_npz(folder / "cora.npz").graph
    noise = NoiseConfig(kind="file", file="cora_meta_adj_0.05.npz")
    with pytest.raises(InputError, match="2485 nodes, the clean graph has 2708"):
        perturb(whole, noise, 0, folder)

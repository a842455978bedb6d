#!/usr/bin/env python3
"""Attacks that know `user_dgl.clean_graph`, and what they do to a GCN on A and on A'.

``python tools/adaptive_attack.py [--datasets cora] [--rates 5,10] [--seeds 0-2] [--powers 0,1,4]``
prints a row of Markdown for each attacked graph. Each attack is `user_dgl.perturb.metattack` in the
form large. It chooses the pairs with the largest gain times w^p, where w is the product of the
supports of the pair by the two judges: what `clean_graph` would think of the pair as an edge. With
p = 0 it is the ordinary attack. The judges are fitted again every ten steps.

The last columns are the mean test accuracy of a GCN in percent over ``--networks`` first weights,
on the attacked graph and on its A'. Data are read from the
folder that USER_DGL_DATA names.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from reproduce import numbers
from reproduction import defence, plan

from user_dgl import clean_graph
from user_dgl.cleaning.clean import FEATURES
from user_dgl.cleaning.posterior import EdgePosterior, Judge, edge_posterior
from user_dgl.config import AttackConfig
from user_dgl.features.preparation import prepare_features
from user_dgl.graph import Graph
from user_dgl.graph.ops import resolve_engine
from user_dgl.perturb import Victim
from user_dgl.perturb.metattack import attack_steps
from user_dgl.structure.false_discovery import edge_weight

_STEPS_OF_A_FIT = 10
HEADER = (
    "data set", "attack", "seed", "p", "added edges with probability above 0.5", "estimated share",
    "GCN", "GCN on A'",
)  # fmt: skip


class Trust:
    """Weight of any pair by `clean_graph`, for `attack_steps`.

    Parameters
    ----------
    feat : scipy CSR (N, F)
        Prepared features.
    power : float
        Power of the product of the supports.
    seed : int
    """

    def __init__(self, feat: sp.csr_matrix, power: float, seed: int):
        self._feat, self._power, self._seed = feat, power, seed
        self._calls = 0

    def __call__(self, graph: Graph, keys: np.ndarray) -> np.ndarray:
        """Weights (M,) of pairs with keys (M,)."""
        if self._calls % _STEPS_OF_A_FIT == 0:
            self._graph = graph
            self._posterior = self._judged(graph)
            # The terms of pairs that are no edges, computed once for all steps of this fit.
            self._views = [judge.terms.without(-1) for judge in self._posterior.judges]
        self._calls += 1
        pairs = np.stack(np.divmod(keys, graph.num_nodes))
        place = self._graph.positions(keys)
        product = np.ones(len(keys))
        for judge, view in zip(self._posterior.judges, self._views, strict=True):
            of_others = _support(judge, judge.logit(view(pairs)))
            product *= np.where(place >= 0, judge.support[place], of_others)
        return product**self._power

    def _judged(self, graph: Graph) -> EdgePosterior:
        posterior = edge_posterior(graph, self._feat, self._seed, resolve_engine("auto"))
        assert posterior is not None
        return posterior


def _support(judge: Judge, score: np.ndarray) -> np.ndarray:
    """Support (M,) by a judge that an edge of each score (M,) would have."""
    num_edges = len(judge.support)
    edges, nulls = np.split(judge.score, [num_edges])
    every = np.concatenate([edges, score])
    return edge_weight(every, nulls, judge.noise_share, np.arange(num_edges))[num_edges:]


def attacked(graph: Graph, victim: Victim, rate: float, seed: int, power: float) -> Graph:
    """Attack a graph.

    Parameters
    ----------
    graph : Graph
    victim : Victim
    rate : float
        Number of flips as a share of the edges.
    seed : int
    power : float
        p; 0: the ordinary attack.
    """
    weigh = Trust(prepare_features(victim.feat, FEATURES), power, seed) if power else None
    settings = AttackConfig(form="large")
    budget = round(rate * graph.num_edges)
    *_, (result, _, _) = attack_steps(graph, budget, seed, settings, victim, weigh=weigh)
    return result


def row(name: str, rate: int, seed: int, power: float, networks: int) -> list[str]:
    """Attack a graph, clean it, and train networks on both."""
    cell = next(c for c in plan.defence() if (c.dataset, c.rate) == (name, 0))
    recipe = str(cell.config), cell.settings
    data, graph = defence._inputs(*recipe)
    split = defence._split(*recipe, data.num_nodes, seed)
    found = attacked(graph, Victim(data.feat, data.labels), rate / 100, seed, power)
    adjacency = found.to_scipy()
    cleaner = clean_graph(adjacency, data.feat, random_state=seed)
    added = found.keys[graph.positions(found.keys) < 0]
    ends = np.divmod(added, graph.num_nodes)
    trusted = cleaner.probability_[ends] > 0.5
    accuracy = [
        np.mean(
            [defence._accuracy("GCN", a, data.feat, data.labels, split, s) for s in range(networks)]
        )
        for a in (adjacency, cleaner.adjacency_)
    ]
    return [
        name,
        f"{rate} %",
        str(seed),
        f"{power:g}",
        f"{np.asarray(trusted).sum()} of {len(added)}",
        f"{100 * cleaner.noise_share_:.1f} %",
        *(f"{each:.1f}" for each in accuracy),
    ]


def main() -> None:
    """Print a row for each attacked graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--datasets", default="cora", metavar="A,B")
    add("--rates", type=numbers, default=[5, 10], metavar="5,10", help="flips in percent")
    add("--seeds", type=numbers, default=[0, 1, 2], metavar="0-2")
    add("--powers", default="0,1,4", metavar="0,1", help="p; 0: the ordinary attack")
    add("--networks", type=int, default=3, metavar="N", help="first weights of the GCN")
    arguments = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    names = arguments.datasets.split(",")
    # The attack changes edges by what the features say of them, and Polblogs has none.
    known = dict.fromkeys(c.dataset for c in plan.defence() if c.dataset != "polblogs")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"--datasets: {', '.join(unknown)}: expected some of {', '.join(known)}")
    for name in names:
        for rate in arguments.rates:
            for power in map(float, arguments.powers.split(",")):
                for seed in arguments.seeds:
                    cells = row(name, rate, seed, power, arguments.networks)
                    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

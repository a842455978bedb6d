"""The loss that USER minimises: the terms of `TERMS`, weighed and named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch

from user_dgl.config import LossConfig
from user_dgl.errors import InputError
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.model.state import State
from user_dgl.model.terms import TERMS, Problem, Scope, SummedTerm, Term, WholeTerm


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums over pairs and nodes that the loss is a function of.

    Those of disjoint parts of a graph add up to those of the whole.

    Attributes
    ----------
    by_term : dict
        What `SummedTerm.sums` gave, for each term that is used.
    """

    by_term: dict[str, Any]

    def __add__(self, other: "LossSums") -> "LossSums":
        return self._each(torch.add, other)

    def __sub__(self, other: "LossSums") -> "LossSums":
        return self._each(torch.sub, other)

    def detach(self) -> "LossSums":
        """The same numbers as constants."""
        return self._each(torch.Tensor.detach)

    def double(self) -> "LossSums":
        """In float64, so that sums that are added and taken away again leave no rest."""
        return self._each(torch.Tensor.double)

    def tensors(self) -> list[torch.Tensor]:
        """All tensors that add up, in a fixed order."""
        tensors: list[torch.Tensor] = []
        self._each(tensors.append)
        return tensors

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> "LossSums":
        """The same terms with other numbers, in the order of `tensors`."""
        given = iter(tensors)
        return self._each(lambda _: next(given))

    def _each(self, function: Callable[..., Any], *others: "LossSums") -> "LossSums":
        return LossSums(
            {
                name: _each(function, sums, *(other.by_term[name] for other in others))
                for name, sums in self.by_term.items()
            }
        )


def _each(function: Callable[..., Any], *sums: Any) -> Any:
    """Apply a function to the corresponding tensors of structures of sums."""
    first = sums[0]
    if isinstance(first, tuple):
        return tuple(_each(function, *parts) for parts in zip(*sums, strict=True))
    if not is_dataclass(first):
        return first if first is None else function(*sums)
    parts = {}
    for part in fields(first):
        values = [getattr(one, part.name) for one in sums]
        parts[part.name] = values[0] if "common" in part.metadata else _each(function, *values)
    return type(first)(**parts)


class USERLoss:
    r"""The loss of USER as named, weighted terms.

    .. math::
        \mathcal L = \gamma\,[\mathrm{NPSI}(A', Y) + \mathrm{NPSI}(A, Y)]
        + \beta\,\mathrm{DBI}(X, Y) + \alpha\,\mathcal L_{obs}(A')
        + \alpha'\,\| \sigma(H H^T) - A \|_F^2
        - \frac{\delta}{N} \sum_i \log \sum_k e^{\cos(h_i, c_k) / \tau}

    The paper (Eq. 5 and 9) has NPSI(A', Y), DBI and the reconstruction; the authors' code has both
    NPSI terms, DBI and the tie to the observed edges. The last term is in neither, see
    `user_dgl.model.terms.Mixture`. NPSI, a function of the graph, knows nothing of the embeddings,
    and DBI alone lets clusters collapse. `LossConfig` says which terms a run uses.

    Every replica has this loss of its own, and what is minimised is their sum.

    Parameters
    ----------
    config : LossConfig
    graph : Graph
        Observed graph A, weight 1 on every edge.
    features : FeatureMatrix
    engine : str
    prior : Tensor (E,) or float
        First weights of the observed edges.
    whole : tuple of int, optional
        N and E, where ``graph`` is a part of the observed graph.

    Raises
    ------
    InputError
        ``loss.terms`` names a term that is not registered, or one with a key of its own.
    """

    def __init__(
        self,
        config: LossConfig,
        graph: Graph,
        features: FeatureMatrix,
        engine: str,
        prior: torch.Tensor | float = 1.0,
        whole: tuple[int, int] | None = None,
    ):
        num_nodes, num_edges = whole or (graph.num_nodes, graph.num_edges)
        self.graph = graph
        self.problem = Problem(config, graph, features, engine, prior, num_nodes, num_edges)
        unknown = [name for name in config.terms if name not in TERMS]
        if unknown:
            raise InputError(f"loss.terms.{unknown[0]}: no such term; known are {', '.join(TERMS)}")
        weights = {name: _weight(name, term, config) for name, term in TERMS.items()}
        self._used = {name: (TERMS[name], weight) for name, weight in weights.items() if weight}

    def __call__(
        self, state: State, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """Weighted terms of a pass over the whole graph; their sum is the loss of each replica.

        Parameters
        ----------
        state : State
        generator : torch.Generator, optional
            For what the terms draw.

        Returns
        -------
        dict of str to Tensor (R,)
        """
        terms = self.terms(self.sums(state), *state.assignment.shape[1:])
        for term, weight in self._used.values():
            if isinstance(term, WholeTerm):
                values = term.values(state, self.problem, generator)
                terms |= {name: weight * value for name, value in values.items()}
        return terms

    def sums(self, state: State, scope: Scope | None = None) -> LossSums:
        """The sums that all terms but the `WholeTerm` ones are functions of.

        Parameters
        ----------
        state : State
            Of the graph, or of a part: then of the pairs that touch its nodes, the assignment of
            these nodes first, then of the others that the pairs have.
        scope : Scope, optional
            Default: all of the graph.

        Raises
        ------
        InputError
            With a scope, a registered term needs the whole graph.
        """
        for name in self.problem.config.terms:
            if scope is not None and name in self._used and isinstance(TERMS[name], WholeTerm):
                raise InputError(
                    f"loss.terms.{name} needs the whole graph in one process: set train.mode=full, "
                    "or train without the launcher"
                )
        every = {
            name: term.sums(state, self.problem, scope)
            for name, (term, _) in self._used.items()
            if isinstance(term, SummedTerm)
        }
        return LossSums({name: sums for name, sums in every.items() if sums is not None})

    def terms(
        self, sums: LossSums, num_replicas: int, num_clusters: int
    ) -> dict[str, torch.Tensor]:
        """Weighted terms (R,) of the sums over the whole graph."""
        terms = {}
        for name, part in sums.by_term.items():
            term, weight = self._used[name]
            assert isinstance(term, SummedTerm)
            terms[name] = weight * term.value(part, self.problem, num_replicas, num_clusters)
        return terms


def _weight(name: str, term: Term, config: LossConfig) -> float:
    """The weight of a term: by its own key, or of one without a key by ``loss.terms``."""
    if type(term).weight is Term.weight:
        return config.terms.get(name, 0.0)
    if name in config.terms:
        raise InputError(f"loss.terms.{name}: this term has a key of its own in loss: set that")
    return term.weight(config)

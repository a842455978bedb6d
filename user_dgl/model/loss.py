"""The loss that USER minimises: the weighted sum of the terms in the registry `TERMS`."""

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

# Names that a report of an epoch has beside those of the terms.
_REPORTED = ("epoch", "loss", "total", "clusters_in_use", "lr", "seconds")


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums over pairs and nodes from which the loss is computed.

    The sums of disjoint parts of a graph add up to the sums of the whole graph.

    Attributes
    ----------
    by_term : dict
        Result of `SummedTerm.sums` for each term that is used.
    """

    by_term: dict[str, Any]

    def __add__(self, other: "LossSums") -> "LossSums":
        return self._each(torch.add, other)

    def __sub__(self, other: "LossSums") -> "LossSums":
        return self._each(torch.sub, other)

    def detach(self) -> "LossSums":
        """Return the same numbers without gradients."""
        return self._each(torch.Tensor.detach)

    def double(self) -> "LossSums":
        """Convert the sums to float64.

        Trainers add sums and subtract them again later. In float32 the rounding errors of this
        would accumulate.
        """
        return self._each(torch.Tensor.double)

    def tensors(self) -> list[torch.Tensor]:
        """List the tensors of all sums, in a fixed order."""
        tensors: list[torch.Tensor] = []
        self._each(tensors.append)
        return tensors

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> "LossSums":
        """Return the same structure with other tensors, given in the order of `tensors`."""
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
    """Apply a function to the corresponding tensors of one or more structures of sums.

    A structure is a tensor, None, or a tuple or dataclass of structures. A field of a dataclass
    whose metadata has ``common`` is the same in all parts of a graph and is kept as it is.
    """
    first = sums[0]
    if isinstance(first, tuple):
        return tuple(_each(function, *parts) for parts in zip(*sums, strict=True))
    if not is_dataclass(type(first)):
        return first if first is None else function(*sums)
    parts = {}
    for part in fields(first):
        values = [getattr(one, part.name) for one in sums]
        parts[part.name] = values[0] if "common" in part.metadata else _each(function, *values)
    return type(first)(**parts)


class USERLoss:
    r"""The loss of USER as a sum of weighted terms with names.

    .. math::
        \mathcal L = \gamma\,[\mathrm{NPSI}(A', Y) + \mathrm{NPSI}(A, Y)]
        + \beta\,\mathrm{DBI}(X, Y) + \alpha\,\mathcal L_{obs}(A')
        + \alpha'\,\| \sigma(H H^T) - A \|_F^2
        - \frac{\delta}{N} \sum_i \log \sum_k e^{\cos(h_i, c_k) / \tau}
        - \epsilon\,\frac{B_E(A', Y) + B_X(X, Y)}{E + n}

    The paper (Eq. 5 and 9) uses NPSI(A', Y), DBI and the reconstruction. The authors' code uses
    both NPSI terms, DBI and the penalty on the observed edges. The last two terms are in neither of
    them; see `Mixture` and `CodeLength` in `user_dgl.model.terms`. NPSI depends on the graph only
    and not on the embeddings, and with DBI alone clusters collapse. The settings in `LossConfig`
    select the terms of a run.

    Every replica has its own loss of this form, and the sum over the replicas is minimised.

    Parameters
    ----------
    config : LossConfig
    graph : Graph
        Observed graph A, with the weights of its edges.
    features : FeatureMatrix
    engine : str
    prior : Tensor (E,) or float
        First weights of the observed edges.
    whole : tuple of int, optional
        N and E of the whole graph, if ``graph`` is a part of the observed graph. Default: the sizes
        of ``graph``.

    Raises
    ------
    InputError
        ``loss.terms`` names a term that is not registered, or a term whose weight is set by another
        key of the section ``loss``.
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
            others = [name for name, term in TERMS.items() if _has_no_key(term)]
            raise InputError(
                f"loss.terms.{unknown[0]}: there is no such term without a key of its own in "
                f"section loss; there are: {', '.join(others) or 'none'}"
            )
        weights = {name: _weight(name, term, config) for name, term in TERMS.items()}
        self._used = {name: (TERMS[name], weight) for name, weight in weights.items() if weight}

    def __call__(
        self, state: State, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """Compute the weighted terms of a pass over the whole graph.

        Parameters
        ----------
        state : State
        generator : torch.Generator, optional
            Generator of the random draws of the terms. Default: torch's generator.

        Returns
        -------
        dict of str to Tensor (R,)
            The sum of the terms is the loss of each replica.
        """
        terms = self.terms(self.sums(state), *state.assignment.shape[1:])
        for term, weight in self._used.values():
            if isinstance(term, WholeTerm):
                values = term.values(state, self.problem, generator)
                for name, value in values.items():
                    if name in terms or name in _REPORTED:
                        raise InputError(
                            f"{type(term).__name__}: the name {name} of its term is taken already"
                        )
                    terms[name] = weight * value
        return terms

    def sums(self, state: State, scope: Scope | None = None) -> LossSums:
        """Compute the sums of all terms that are a `SummedTerm`.

        Parameters
        ----------
        state : State
            State of the whole graph or of a part. The state of a part has the pairs that touch the
            nodes of the part. Its assignment has first the rows of these nodes and then the rows of
            the other ends of the pairs.
        scope : Scope, optional
            Part of the graph over which the sums are taken. Default: the whole graph.

        Raises
        ------
        InputError
            A scope is given, and a term of ``loss.terms`` needs the whole graph.
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
        """Compute the weighted terms (R,) from the sums over the whole graph."""
        terms = {}
        for name, part in sums.by_term.items():
            term, weight = self._used[name]
            assert isinstance(term, SummedTerm)
            terms[name] = weight * term.value(part, self.problem, num_replicas, num_clusters)
        return terms


def _has_no_key(term: Term) -> bool:
    """Whether the weight of a term stands in ``loss.terms``."""
    return type(term).weight is Term.weight


def _weight(name: str, term: Term, config: LossConfig) -> float:
    """Weight of a term: from the term's own key, or from ``loss.terms`` if it has none."""
    if _has_no_key(term):
        return config.terms.get(name, 0.0)
    if name in config.terms:
        raise InputError(f"loss.terms.{name}: this term has a key of its own in loss: set that key")
    return term.weight(config)

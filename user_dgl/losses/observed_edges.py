"""The tie between A' and the observed edges."""

import torch


def observed_edge_penalty(
    weight: torch.Tensor, prior: torch.Tensor | float, form: str
) -> torch.Tensor:
    r"""Tie between the learned weights of the observed edges and their first weights :math:`w^0`.

    ``frobenius``: :math:`\| A' \circ A - W^0 \|_F`, the authors' code, where :math:`W^0 = A`: not
    squared, both directions counted. Its gradient has norm :math:`\sqrt 2` however small the
    difference, against which the entropy's pull of order 1/E on a single edge does nothing, so the
    weights hardly move. ``mean_square`` (not in the paper):
    :math:`\frac1E \sum_e (w_e - w^0_e)^2`, which has the entropy's scale whatever the size of the
    graph.

    Parameters
    ----------
    weight : Tensor (E,)
        Learned weights of the observed pairs.
    prior : Tensor (E,) or float
    form : str

    Returns
    -------
    Tensor ()
        With gradient 0 where every weight is as it was.
    """
    return edge_penalty((weight - prior).square().sum(), len(weight), form)


def edge_penalty(squares: torch.Tensor, num_edges: int, form: str) -> torch.Tensor:
    """`observed_edge_penalty` of the sum of squared differences."""
    if form == "frobenius":
        # Clamped, as the gradient of the root is infinite at 0: below the clamp it is 0.
        return (2 * squares).clamp_min(torch.finfo(squares.dtype).tiny).sqrt() * (squares > 0)
    return squares / max(num_edges, 1)

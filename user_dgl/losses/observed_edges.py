"""Penalty on the difference between the learned and the first weights of the observed edges."""

import torch


def edge_penalty(squares: torch.Tensor, num_edges: int, form: str) -> torch.Tensor:
    r"""Penalty that keeps the learned weights :math:`w` near their first values :math:`w^0`.

    * ``frobenius``: :math:`\| A' \circ A - W^0 \|_F`, the form of the authors' code, where
      :math:`W^0 = A`. The norm is not squared, and both directions of an edge count. The norm of
      its gradient is :math:`\sqrt 2` however small the difference is. The entropy's gradient for a
      single edge is of order 1/E and cannot act against it, so the weights hardly change.
    * ``mean_square``: :math:`\frac1E \sum_e (w_e - w^0_e)^2`. Not in the paper. Its scale is that
      of the entropy for graphs of any size.

    Parameters
    ----------
    squares : Tensor ()
        :math:`\sum_e (w_e - w^0_e)^2` over the observed pairs.
    num_edges : int
        E.
    form : str
        ``frobenius`` or ``mean_square``.

    Returns
    -------
    Tensor ()
        Its gradient is 0 if no weight has changed.
    """
    if form == "frobenius":
        # Clamped, because the gradient of the square root is infinite at 0. Below the clamp the
        # gradient is 0.
        return (2 * squares).clamp_min(torch.finfo(squares.dtype).tiny).sqrt() * (squares > 0)
    return squares / max(num_edges, 1)

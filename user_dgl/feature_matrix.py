"""Node features as a constant of autograd: products with X and its transpose, sparse or dense."""

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.ops import csr_tensor

# Above this share of non-zeros a dense float takes less room than a value with its index, twice
# (X and its transpose are both kept).
_DENSE_ABOVE = 0.3


class FeatureMatrix:
    """Features X (N, F), fixed during training.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    dtype : torch.dtype
    device : str

    Attributes
    ----------
    shape : tuple (N, F)
    column_mean, column_variance : Tensor (F,)
        Over all nodes, zeros included; the variance is the biased one, as BatchNorm uses.
    squared_norm : Tensor (N,)
        Squared Euclidean norm of each row.
    """

    def __init__(self, feat: sp.csr_matrix, dtype=torch.float32, device="cpu"):
        feat = sp.csr_matrix(feat)
        num_nodes, num_feats = self.shape = feat.shape
        square = feat.multiply(feat)
        mean = np.asarray(feat.mean(axis=0, dtype=np.float64)).ravel()
        second = np.asarray(square.mean(axis=0, dtype=np.float64)).ravel()
        norm = np.asarray(square.sum(axis=1, dtype=np.float64)).ravel()

        def tensor(values):
            return torch.as_tensor(values).to(device=device, dtype=dtype)

        self.dtype = dtype
        self.column_mean = tensor(mean)
        self.column_variance = tensor(np.maximum(second - mean**2, 0.0))
        self.squared_norm = tensor(norm)
        self._dense = self._sparse = self._transposed = None
        if feat.nnz > _DENSE_ABOVE * num_nodes * num_feats:
            self._dense = tensor(feat.toarray())
        else:
            self._sparse = _as_torch(feat, dtype, device)
            self._transposed = _as_torch(feat.T.tocsr(), dtype, device)

    @property
    def is_sparse(self) -> bool:
        """Whether X is kept sparse."""
        return self._dense is None

    def matmul(self, other: torch.Tensor) -> torch.Tensor:
        """X B (N, d) for B (F, d); differentiable in B."""
        if self._dense is not None:
            return self._dense @ other
        return _ConstantProduct.apply(other, self._sparse, self._transposed)

    def t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """X^T B (F, d) for B (N, d); differentiable in B."""
        if self._dense is not None:
            return self._dense.t() @ other
        return _ConstantProduct.apply(other, self._transposed, self._sparse)


def _as_torch(matrix: sp.csr_matrix, dtype, device) -> torch.Tensor:
    parts = (
        matrix.indptr,
        matrix.indices,
        matrix.data.astype(np.float64 if dtype == torch.float64 else np.float32),
    )
    return csr_tensor(*(torch.from_numpy(part).to(device) for part in parts), matrix.shape)


class _ConstantProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, other, matrix, transposed):
        ctx.transposed = transposed
        return matrix @ other

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return ctx.transposed @ grad.contiguous(), None, None

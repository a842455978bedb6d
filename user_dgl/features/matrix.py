"""Constant node features X for autograd: products with X and its transpose, sparse or dense."""

import hashlib
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.sparsefuncs import mean_variance_axis

from user_dgl.graph.csr_engine import csr_product, csr_tensor

# Above this share of non-zeros, X is stored densely. A sparse X is stored twice, as X and as its
# transpose, each with values and indices, and would then need more memory.
_DENSE_ABOVE = 0.3


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Mean and biased variance of each column (F,), float64; zeros count as values."""

    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, feat: sp.csr_matrix) -> "ColumnStatistics":
        """Compute the statistics of a sparse matrix (N, F)."""
        return cls(*mean_variance_axis(sp.csr_matrix(feat, dtype=np.float64), axis=0))


class FeatureMatrix:
    """Features X (N, F) that do not change during training.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    dtype : torch.dtype
    device : str or torch.device
    columns : ColumnStatistics, optional
        Statistics of all rows, if ``feat`` has only some of them. Default: those of ``feat``.

    Attributes
    ----------
    shape : tuple (N, F)
    column_mean, column_variance : Tensor (F,)
        Over all nodes; zeros count as values. The variance is the biased one, as in BatchNorm.
    squared_norm, centred_squared_norm : Tensor (N,)
        :math:`|x_i|^2` and :math:`|x_i - \\mu|^2`, where :math:`\\mu` are the column means.
    """

    def __init__(
        self,
        feat: sp.csr_matrix,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        columns: ColumnStatistics | None = None,
    ):
        self.dtype, self.device, self.shape = dtype, torch.device(device), feat.shape
        self._feat = feat
        feat = sp.csr_matrix(feat, dtype=np.float64)
        columns = ColumnStatistics.of(feat) if columns is None else columns
        self._mean, variance = columns.mean, columns.variance
        norm = np.asarray(feat.multiply(feat).sum(axis=1)).ravel()
        # |x - mean|^2 = |x|^2 - 2 <x, mean> + |mean|^2
        centred_norm = norm - 2 * (feat @ self._mean) + self._mean @ self._mean

        def tensor(values: np.ndarray) -> torch.Tensor:
            # Copied, because NumPy's memory may start at any address, and the rounding of a product
            # can depend on the alignment of its operands and so differ between runs.
            return torch.tensor(values, device=device, dtype=dtype)

        self.column_mean = tensor(self._mean)
        self.column_variance = tensor(variance)
        self.squared_norm = tensor(norm)
        self.centred_squared_norm = tensor(np.maximum(centred_norm, 0.0))

    def rows(self, ids: torch.Tensor) -> "FeatureMatrix":
        """Select the rows ``ids`` (n,); the mean and the variance of all rows are kept."""
        part = copy(self)
        for name in ("pattern", "_dense", "_sparse", "_transposed"):
            part.__dict__.pop(name, None)
        part._feat = self._feat[ids.numpy()]
        part.shape = part._feat.shape
        part.squared_norm = self.squared_norm[ids]
        part.centred_squared_norm = self.centred_squared_norm[ids]
        return part

    @cached_property
    def pattern(self) -> "FeatureMatrix":
        """The matrix (N, F) that is 1 at each non-zero of X and 0 elsewhere, built when first used.

        Its column statistics are those of its own rows.
        """
        ones = sp.csr_matrix(self._feat != 0, dtype=np.float32)
        return FeatureMatrix(ones, self.dtype, self.device)

    # The tensors of the matrix are built when they are first used in a product.

    @property
    def is_sparse(self) -> bool:
        """Whether X is stored as a sparse matrix."""
        return self._feat.nnz <= _DENSE_ABOVE * self.shape[0] * self.shape[1]

    @cached_property
    def _dense(self) -> torch.Tensor | None:
        """X - mean (N, F) as a dense tensor, or None if X is stored as a sparse matrix."""
        if self.is_sparse:
            return None
        # The features are centred, because sums of features far from 0 would lose the digits that
        # differ between nodes. The dense array needs only a few times the memory of the given
        # matrix, because a large share of the features are non-zero.
        dense = self._feat.toarray().astype(np.float64, copy=False)
        dense -= self._mean
        return torch.tensor(dense, device=self.device, dtype=self.dtype)  # copied, see __init__

    @cached_property
    def _sparse(self) -> torch.Tensor:
        return _as_torch(sp.csr_matrix(self._feat), self.dtype, self.device)

    @cached_property
    def _transposed(self) -> torch.Tensor:
        return _as_torch(sp.csr_matrix(self._feat.T), self.dtype, self.device)

    def matmul(self, other: torch.Tensor) -> torch.Tensor:
        """X B (N, d) for B (F, d); differentiable in B."""
        if self._dense is not None:
            return self._dense @ other + self.column_mean @ other
        return _ConstantProduct.apply(other, self._sparse, self._transposed)

    def centred_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """(X - mean) B (N, d) for B (F, d), with the column means; differentiable in B."""
        if self._dense is not None:
            return self._dense @ other
        # In place, because each further (N, d) tensor costs as much time as a product.
        return self.matmul(other).add_(-(self.column_mean @ other))

    def t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """X^T B (F, d) for B (N, d); differentiable in B."""
        if self._dense is not None:
            return self._dense.t() @ other + torch.outer(self.column_mean, other.sum(0))
        return _ConstantProduct.apply(other, self._transposed, self._sparse)

    def centred_t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """(X - mean)^T B (F, d) for B (N, d), with the column means; differentiable in B."""
        if self._dense is not None:
            return self._dense.t() @ other
        return self.t_matmul(other) - torch.outer(self.column_mean, other.sum(0))


class PointMatrix:
    """Dense points H (N, d) with gradients, for losses that otherwise take a `FeatureMatrix`.

    It has the attributes and methods of `FeatureMatrix` that the losses use.

    Parameters
    ----------
    points : Tensor (N, d)
    mean : Tensor (d,), optional
        Mean of all points, if ``points`` has only some of them. Default: the mean of ``points``.
    """

    def __init__(self, points: torch.Tensor, mean: torch.Tensor | None = None):
        self.column_mean = points.mean(0) if mean is None else mean
        self._centred = points - self.column_mean
        self.squared_norm = points.square().sum(1)
        self.centred_squared_norm = self._centred.square().sum(1)

    def centred_t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """(H - mean)^T B (d, m) for B (N, m); differentiable in H and B."""
        return self._centred.t() @ other


def _as_torch(matrix: sp.csr_matrix, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Convert a scipy CSR to a torch CSR tensor of type float32 or float64."""
    values = matrix.data.astype(np.float64 if dtype == torch.float64 else np.float32)
    indptr, indices, values = (
        torch.from_numpy(part).to(device) for part in (matrix.indptr, matrix.indices, values)
    )
    return csr_tensor(indptr, indices, values, matrix.shape)


class _ConstantProduct(torch.autograd.Function):
    """M B for a constant sparse M (N, F), whose transpose is given, and B (F, d)."""

    @staticmethod
    def forward(
        ctx: Any, other: torch.Tensor, matrix: torch.Tensor, transposed: torch.Tensor
    ) -> torch.Tensor:
        ctx.transposed = transposed
        return csr_product(matrix, other)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return csr_product(ctx.transposed, grad.contiguous()), None, None


def feature_digest(feat: sp.csr_matrix) -> str:
    """SHA-256 digest of the shape and content of a sparse matrix, to recognise the same matrix."""
    parts = hashlib.sha256(str(feat.shape).encode())
    for part in (feat.indptr.astype(np.int64), feat.indices.astype(np.int64), feat.data):
        parts.update(np.ascontiguousarray(part).data)
    return parts.hexdigest()

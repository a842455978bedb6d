"""Node features as a constant of autograd: products with X and its transpose, sparse or dense."""

import hashlib
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.sparsefuncs import mean_variance_axis

from user_dgl.graph.csr_engine import csr_product, csr_tensor

# Above this share of non-zeros a dense float takes less room than a value with its index, twice
# (X and its transpose are both kept).
_DENSE_ABOVE = 0.3


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Mean and biased variance of each column (F,), float64, zeros included."""

    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, feat: sp.csr_matrix) -> "ColumnStatistics":
        """Those of the rows of a matrix."""
        return cls(*mean_variance_axis(sp.csr_matrix(feat, dtype=np.float64), axis=0))


class FeatureMatrix:
    """Features X (N, F), fixed during training.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    dtype : torch.dtype
    device : str
    columns : ColumnStatistics, optional
        Of all rows, where ``feat`` has some of them.

    Attributes
    ----------
    shape : tuple (N, F)
    column_mean, column_variance : Tensor (F,)
        Over all nodes, zeros included; the variance is the biased one, as BatchNorm uses.
    squared_norm, centred_squared_norm : Tensor (N,)
        :math:`|x_i|^2` and :math:`|x_i - \\mu|^2`, :math:`\\mu` the column means.
    """

    def __init__(
        self,
        feat: sp.csr_matrix,
        dtype=torch.float32,
        device="cpu",
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

        def tensor(values):
            # A copy, as memory of NumPy's starts anywhere, by which a product may round one way in
            # this run and another in the next.
            return torch.tensor(values, device=device, dtype=dtype)

        self.column_mean = tensor(self._mean)
        self.column_variance = tensor(variance)
        self.squared_norm = tensor(norm)
        self.centred_squared_norm = tensor(np.maximum(centred_norm, 0.0))

    def rows(self, ids: torch.Tensor) -> "FeatureMatrix":
        """Some rows, with the mean and the variance of all."""
        part = copy(self)
        for name in ("_dense", "_sparse", "_transposed"):
            part.__dict__.pop(name, None)
        part._feat = self._feat[ids.numpy()]
        part.shape = part._feat.shape
        part.squared_norm = self.squared_norm[ids]
        part.centred_squared_norm = self.centred_squared_norm[ids]
        return part

    # The matrix itself is made when it is first multiplied with.

    @property
    def is_sparse(self) -> bool:
        """Whether X is kept sparse."""
        return self._feat.nnz <= _DENSE_ABOVE * self.shape[0] * self.shape[1]

    @cached_property
    def _dense(self) -> torch.Tensor | None:
        if self.is_sparse:
            return None
        # Centred: sums of features far from 0 would lose the digits that tell nodes apart.
        # No larger than a few times the features as given: most of them are not 0.
        dense = self._feat.toarray().astype(np.float64, copy=False)
        dense -= self._mean
        return torch.tensor(dense, device=self.device, dtype=self.dtype)  # see above

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
        """(X - mean) B (N, d) for B (F, d), means by column; differentiable in B."""
        if self._dense is not None:
            return self._dense @ other
        # In place and added, not subtracted: each further block (N, d) costs as much as a product.
        return self.matmul(other).add_(-(self.column_mean @ other))

    def t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """X^T B (F, d) for B (N, d); differentiable in B."""
        if self._dense is not None:
            return self._dense.t() @ other + torch.outer(self.column_mean, other.sum(0))
        return _ConstantProduct.apply(other, self._transposed, self._sparse)

    def centred_t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """(X - mean)^T B (F, d) for B (N, d), means by column; differentiable in B."""
        if self._dense is not None:
            return self._dense.t() @ other
        return self.t_matmul(other) - torch.outer(self.column_mean, other.sum(0))


class PointMatrix:
    """Dense points H (N, d) that gradients flow back to, with what `FeatureMatrix` offers losses.

    Parameters
    ----------
    points : Tensor (N, d)
    mean : Tensor (d,), optional
        Of all points, where these are some of them.
    """

    def __init__(self, points: torch.Tensor, mean: torch.Tensor | None = None):
        self.column_mean = points.mean(0) if mean is None else mean
        self._centred = points - self.column_mean
        self.squared_norm = points.square().sum(1)
        self.centred_squared_norm = self._centred.square().sum(1)

    def centred_t_matmul(self, other: torch.Tensor) -> torch.Tensor:
        """(H - mean)^T B (d, m) for B (N, m)."""
        return self._centred.t() @ other


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
        return csr_product(matrix, other)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return csr_product(ctx.transposed, grad.contiguous()), None, None


def feature_digest(feat: sp.csr_matrix) -> str:
    """Hash of a sparse matrix, to know it again."""
    parts = hashlib.sha256(str(feat.shape).encode())
    for part in (feat.indptr.astype(np.int64), feat.indices.astype(np.int64), feat.data):
        parts.update(np.ascontiguousarray(part).data)
    return parts.hexdigest()

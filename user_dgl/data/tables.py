"""Matrices and tables that a caller holds in memory, with the names of their rows and columns.

NumPy, SciPy, torch and pandas are read, and whatever NumPy makes an array of. Cells that are not
numbers are refused with the name of their column: nothing is guessed.
"""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from user_dgl.data.attributed_graph import one_line, some
from user_dgl.data.categories import ADVICE, CategoryEncoder
from user_dgl.errors import InputError

MatrixLike: TypeAlias = np.ndarray | torch.Tensor | sp.spmatrix | sp.sparray | pd.DataFrame

# Kinds of the cells of an object column, as pandas names them, that are real numbers.
_NUMBERS = frozenset(("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"))
_KINDS = {"string": "text", "mixed": "mixed cells", "mixed-integer": "numbers and text"}


@dataclass(frozen=True, eq=False)
class Table:
    """A matrix of numbers with the names that came with it.

    Attributes
    ----------
    matrix : ndarray or scipy sparse (R, F)
    rows : pandas Index (R,) or None
        Names of the rows. None if the rows have no names, or only the default ones 0..R-1.
    columns : ndarray (F,) of str, or None
        Names of the columns, if all of them are text.
    """

    matrix: Any
    rows: pd.Index | None = None
    columns: np.ndarray | None = None


def as_table(values: Any, name: str, encoder: CategoryEncoder | None = None) -> Table:
    """Take the numbers and the names of a matrix of any kind.

    Parameters
    ----------
    values : DataFrame, ndarray, scipy sparse, Tensor (dense or sparse) or nested lists
        Columns of type object, bool, category or of a nullable type are read if all their cells
        are numbers or booleans.
    name : str
        Name for messages.
    encoder : CategoryEncoder, optional
        Turns columns of text and of categories of a DataFrame into columns of 0 and 1, which follow
        the others. None: such columns are refused.

    Raises
    ------
    InputError
        The values are no matrix, or a cell of a DataFrame or of an object array is missing or is
        not a real number.
    """
    if not isinstance(values, pd.DataFrame):
        array = as_array(values, name)
        if array.dtype == object and array.ndim == 2:
            array = _cells(pd.DataFrame(array), name)
        if array.dtype.kind == "c":
            raise InputError(f"{name}: Complex data not supported: expected real numbers")
        return Table(array)
    frame = values
    columns = None
    if len(frame.columns) and all(isinstance(each, str) for each in frame.columns):
        columns = np.array(frame.columns, dtype=object)
    rows = None if is_default(frame.index) else frame.index
    kinds = list(frame.dtypes)
    if kinds and all(isinstance(kind, pd.SparseDtype) and kind.fill_value == 0 for kind in kinds):
        if len({kind.subtype for kind in kinds}) > 1:
            # pandas has no common type of booleans and numbers.
            frame = frame.astype(pd.SparseDtype(np.float64, 0))
        return Table(frame.sparse.to_coo().tocsr(), rows, columns)
    if encoder is None:
        return Table(_cells(frame, name), rows, columns)
    if encoder.columns:  # those of the fit, whatever the cells of these rows are
        known = set(encoder.columns)
        encoded = [place for place, column in enumerate(frame.columns) if column in known]
    else:
        encoded = [c for c in range(frame.shape[1]) if _is_category(frame.iloc[:, c])]
    if not encoded and not encoder.columns:
        return Table(_cells(frame, name), rows, columns)
    advice = "the fit had numbers there" if encoder.columns else ADVICE
    categories = encoder.encode(frame.iloc[:, encoded], name)
    numbers = frame.iloc[:, [c for c in range(frame.shape[1]) if c not in set(encoded)]]
    parts = [sp.csr_matrix(_cells(numbers, name, advice)), categories]
    return Table(sp.hstack(parts, format="csr"), rows, columns)


def as_matrix(values: Any, name: str) -> np.ndarray | sp.spmatrix:
    """Convert a matrix of any kind to a SciPy sparse matrix or an ndarray of numbers.

    Raises
    ------
    InputError
    """
    return as_table(values, name).matrix


def as_array(values: Any, name: str) -> np.ndarray | sp.spmatrix:
    """Convert values to an ndarray of any type, or to a SciPy sparse matrix if they are sparse.

    Raises
    ------
    InputError
        The values are a ragged list, a sparse tensor that is no matrix, or have masked cells.
    """
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        of_numpy = values.dtype != torch.bfloat16
        if not of_numpy or (values.dtype == torch.float16 and values.layout != torch.strided):
            values = values.float()  # NumPy does not have the first type, SciPy not the second
        if values.layout == torch.strided:
            return values.numpy()
        entries = values.to_sparse_coo().coalesce()
        if entries.sparse_dim() != 2 or entries.dim() != 2:
            raise InputError(f"{name}: expected a matrix, got shape {tuple(values.shape)}")
        ends = tuple(entries.indices().numpy())
        return sp.csr_matrix((entries.values().numpy(), ends), shape=tuple(entries.shape))
    if sp.issparse(values):
        return values
    if np.ma.is_masked(values):
        raise InputError(f"{name}: missing (masked) cells: fill them in, or drop their rows")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name}: not a matrix: {one_line(error)}") from None


def is_default(index: pd.Index) -> bool:
    """Whether pandas made the names of an index: they are 0, 1, 2, ..., as nobody gave others."""
    return isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))


def _cells(frame: pd.DataFrame, name: str, advice: str = ADVICE) -> np.ndarray:
    """Convert a DataFrame to numbers, column by column where the columns differ in type."""
    kinds = set(frame.dtypes)
    if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype):
        (kind,) = kinds
        if kind.kind in "biuf":
            array = frame.to_numpy()
            if kind.kind == "f":
                _check_given(array, frame, name)
            return array
    columns, wrong = [], []
    for place, column in enumerate(frame.columns):
        cells = frame.iloc[:, place]
        problem = _problem(cells)
        if problem:
            wrong.append(f"{shown(column)} has {problem}")
        else:
            columns.append(cells.astype(object).where(cells.notna(), np.nan).astype(np.float64))
    if wrong:
        raise InputError(f"{name}: not numbers: column {some(wrong, most=3)}: {advice}")
    array = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    _check_given(array, frame, name)
    return array


def _is_category(cells: pd.Series) -> bool:
    """Whether a column has text or categories in place of numbers."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return True
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    return kind in ("string", "mixed-integer") and _problem(cells) is not None


def _problem(cells: pd.Series) -> str | None:
    """Say what a column has in place of real numbers, or None if it has real numbers."""
    kind = cells.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return f"categories, such as {_example(cells)}"
    if pd.api.types.is_complex_dtype(kind):
        return "complex numbers"
    if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_numeric_dtype(kind):
        return None
    found = pd.api.types.infer_dtype(cells, skipna=True)
    if found in _NUMBERS:
        return None
    if all(
        issubclass(each, numbers.Real | np.bool_ | Decimal)
        for each in set(map(type, cells.dropna()))
    ):
        return None  # for example booleans among numbers
    return f"{_KINDS.get(found, found)}, such as {_example(cells)}"


def _example(cells: pd.Series) -> str:
    """Show the first cell that is not missing."""
    given = cells.dropna()
    return shown(given.iloc[0]) if len(given) else "nothing"


def shown(name: Any) -> str:
    """Write a name or a cell for messages; a number of NumPy like one of Python.

    >>> shown(np.int64(3)), shown("a")
    ('3', "'a'")
    """
    return repr(name.item() if isinstance(name, np.generic) else name)


def _check_given(array: np.ndarray, frame: pd.DataFrame, name: str) -> None:
    """Refuse missing and infinite cells by the names of their row and column."""
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = (int(place[0]) for place in bad.nonzero())
        raise InputError(
            f"{name}: {int(bad.sum())} missing, NaN or infinite cells, the first in row "
            f"{shown(frame.index[row])}, column {shown(frame.columns[column])}: fill them in, for "
            "example with sklearn.impute.SimpleImputer, or drop them"
        )


def positions_of(wanted: pd.Index, given: pd.Index, what: str, there: str) -> np.ndarray:
    """Find the place of each wanted name among the given ones; both must have the same names.

    Parameters
    ----------
    wanted, given : pandas Index
    what, there : str
        Texts for messages: what has the wanted names, and what has the given ones.

    Returns
    -------
    int64 ndarray
        ``given[place[i]] == wanted[i]``.

    Raises
    ------
    InputError
        A name is given twice, or the two do not have the same names.
    """
    for names, owner in ((wanted, what), (given, there)):
        again = names[names.duplicated()]
        if len(again):
            raise InputError(
                f"{owner}: name {shown(again[0])} given twice: make the names distinct"
            )
    place = given.get_indexer(wanted)
    missing, left = wanted[place < 0], given.difference(wanted, sort=False)
    if len(missing):
        message = f"{there}: no name {shown(missing[0])}, which {what} has"
        if len(missing) > 1:
            message += f" ({len(missing)} such names)"
        raise InputError(f"{message}: {_advice(wanted, given)}")
    if len(left):
        raise InputError(
            f"{there}: {len(left)} names that {what} does not have, the first is {shown(left[0])}: "
            f"{_advice(wanted, given)}"
        )
    return place


def _advice(wanted: pd.Index, given: pd.Index) -> str:
    """Say what may help where two sets of names differ."""
    if len(wanted.map(str).intersection(given.map(str))) > len(wanted.intersection(given)):
        return "the same names are numbers in one and text in the other: convert with astype(str)"
    return "both must have the same names, in any order"


def as_index(names: Sequence[Any]) -> pd.Index:
    """Make an index of names of any kind; tuples stay tuples."""
    return pd.Index(list(names), tupleize_cols=False)

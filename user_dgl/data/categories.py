"""Columns of categories as 0/1 columns, one for each value (``features.categorical=one_hot``)."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.preprocessing import OneHotEncoder

from user_dgl.data.attributed_graph import some
from user_dgl.errors import InputError

CATEGORICAL = ("refuse", "one_hot")
ADVICE = "encode them as numbers, leave them out, or set features.categorical=one_hot"
# A column with more distinct values than this share of its rows names the nodes.
_MOST_DISTINCT = 0.5
_FEW_ROWS = 20


class CategoryEncoder:
    """Turns columns of categories into 0/1 columns, and keeps the values for the rows of new nodes.

    Values are compared as text, so that the number 1 and the text ``1`` are one category. A new
    value, which the fit did not have, has 0 in all columns.
    """

    def __init__(self) -> None:
        self._encoder: OneHotEncoder | None = None
        self.columns: list[object] = []

    def encode(self, frame: pd.DataFrame, name: str) -> sp.csr_matrix:
        """Encode columns (R, D) of categories as 0/1 columns (R, C); the first call fits.

        Parameters
        ----------
        frame : DataFrame
        name : str
            Name for messages.

        Raises
        ------
        InputError
            A cell is missing, a column has other values in nearly every row, the columns are not
            those of the fit, or a column has numbers that are no categories of the fit.
        """
        missing = frame.isna().to_numpy()
        if missing.any():
            row, column = (int(place[0]) for place in missing.nonzero())
            raise InputError(
                f"{name}: {int(missing.sum())} categories are missing, the first in row "
                f"{frame.index[row]}, column {frame.columns[column]!r}: fill them in, for example "
                "with a word of their own"
            )
        cells = frame.astype(str)
        if self._encoder is None:
            self._check_repeated(cells, name)
            self.columns = list(frame.columns)
            self._encoder = OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
            self._encoder.fit(cells.to_numpy(dtype=object))
        elif list(frame.columns) != self.columns:
            raise InputError(
                f"{name}: categories in column {some([*map(repr, frame.columns)]) or 'none'}, and "
                f"the fit had them in {some([*map(repr, self.columns)]) or 'none'}"
            )
        else:
            self._check_codes(frame, cells, name)
        return sp.csr_matrix(self._encoder.transform(cells.to_numpy(dtype=object)))

    def _check_codes(self, frame: pd.DataFrame, cells: pd.DataFrame, name: str) -> None:
        """Refuse a column of numbers of which the fit knows none: they may be codes of the values.

        Values of text that the fit did not have are new ones.
        """
        assert self._encoder is not None
        for place, known in enumerate(self._encoder.categories_):
            column = frame.iloc[:, place]
            if not pd.api.types.is_numeric_dtype(column) or not len(column):
                continue
            if not np.isin(cells.iloc[:, place].to_numpy(dtype=object), known).any():
                raise InputError(
                    f"{name}: column {frame.columns[place]!r} has numbers, and none of them is a "
                    f"category of the fit, such as {known[0]!r}: give the values themselves"
                )

    @staticmethod
    def _check_repeated(cells: pd.DataFrame, name: str) -> None:
        """Refuse columns whose values hardly ever occur again."""
        distinct = cells.nunique()
        many = distinct[(distinct > _MOST_DISTINCT * len(cells)) & (len(cells) >= _FEW_ROWS)]
        if len(many):
            raise InputError(
                f"{name}: column {many.index[0]!r} has {many.iloc[0]} different values in "
                f"{len(cells)} rows, so it names the nodes and is no category: leave it out"
            )

    def note(self) -> str:
        """Say which columns were encoded, as how many."""
        assert self._encoder is not None
        number = sum(map(len, self._encoder.categories_))
        return (
            f"categories in column {some([*map(repr, self.columns)], most=3)} became {number} "
            "columns of 0 and 1"
        )

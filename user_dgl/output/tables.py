"""CSV files that the package's own readers take back."""

import csv

import pandas as pd
from pandas.api.types import is_numeric_dtype

from user_dgl.data.reading.cells import MISSING


def csv_text(table: pd.DataFrame, float_format: str | None = None) -> str:
    """Return a table as CSV with a header.

    All text is in quotation marks if one id starts with anything but a letter or a digit, or is a
    word such as NA. Without them, its row could be read as a comment (``#``, ``%``) or without id.

    Parameters
    ----------
    table : DataFrame
    float_format : str, optional
        Format of real numbers, see `pandas.DataFrame.to_csv`.

    >>> csv_text(pd.DataFrame({"node": ["a", "#b"], "cluster": [0, 1]}))
    'node,cluster\\n"a",0\\n"#b",1\\n'
    """
    text = [column for column in table if not is_numeric_dtype(table[column])]
    cells = [table[column].astype(str) for column in text]
    plain = all(c.str.match(r"-?[^\W_]").all() and not c.isin(MISSING).any() for c in cells)
    rows = table.to_csv(
        index=False,
        header=False,
        quoting=csv.QUOTE_MINIMAL if plain else csv.QUOTE_NONNUMERIC,
        float_format=float_format,
        lineterminator="\n",
    )
    return ",".join(table.columns) + "\n" + rows

"""A path of four nodes with features, as text."""

import numpy as np


def by_id(data):
    """Features by the user's ids."""
    ids = data.node_ids or tuple(str(i) for i in range(data.num_nodes))
    return dict(zip(ids, data.feat.toarray().tolist(), strict=True))


PATH = "0,1\n1,2\n2,3\n"
ROWS = np.array([[1.5, 0], [0, 2.5], [0.5, 0.5], [0, 0]], dtype=np.float32)


def as_csv(rows, *, ids=None, separator=","):
    cells = rows.tolist() if ids is None else [[i, *r] for i, r in zip(ids, rows, strict=True)]
    return "".join(separator.join(map(str, row)) + "\n" for row in cells)

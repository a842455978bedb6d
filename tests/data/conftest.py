"""Edge lists, features and labels written to files and loaded."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.data import load_edge_list


@pytest.fixture
def files(tmp_path):
    """Writes text, bytes or arrays and loads them."""

    def save(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        elif sp.issparse(content):
            sp.save_npz(path, content)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def load(edges, features=None, labels=None, *, suffix=".csv"):
        named = [(f"edges{suffix}", edges), ("features", features), ("labels", labels)]
        ends = {np.ndarray: ".npy", sp.csr_matrix: ".npz"}
        return load_edge_list(
            *(
                None if content is None else save(name + ends.get(type(content), ""), content)
                for name, content in named
            )
        )

    load.save = save
    return load

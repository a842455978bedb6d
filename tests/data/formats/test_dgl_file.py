"""Files of ``dgl.save_graphs``."""

import torch
from graph_files import carrying_dgl, notes, refused, write

from user_dgl._dgl import dgl
from user_dgl.data import load_edge_list


def test_dgl_files_refused(tmp_path):
    path = tmp_path / "g.bin"
    carrying_dgl(path)
    whole = path.read_bytes()
    refused(write(path, whole[:-100]), "not a file of dgl.save_graphs, or damaged")
    # A length that crashes the process which reads it.
    at = whole.index(b"feat") - 8
    refused(
        write(path, whole[:at] + b"\xff" * 8 + whole[at + 8 :]), "crashed the process that read it"
    )
    graph = dgl.graph(([0, 1], [1, 2]))
    dgl.save_graphs(str(path), [graph, graph])
    refused(path, "holds 2 graphs, expected one")
    graph.ndata["feat"] = torch.tensor([[1.0], [float("nan")], [2.0]])
    dgl.save_graphs(str(path), [graph])
    filled = load_edge_list(path, missing="mean")
    assert filled.feat.toarray().ravel().tolist() == [1, 1.5, 2]
    assert "g.bin: 1 missing or infinite features set to the mean" in notes(filled)
    refused(tmp_path / "none.bin", "No such file")

"""Files of `dgl.save_graphs`, read by DGL in a process of its own."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from user_dgl.data.base import AttributedGraph
from user_dgl.data.npz import load_npz, write_npz
from user_dgl.errors import InputError
from user_dgl.machine import available_memory_mb, process_status

_GRAPH, _ANSWER = "graph.npz", "answer.json"
_CHILD = "import sys; from user_dgl.data.dgl_file import _convert; _convert(*sys.argv[1:])"


def load_dgl_file(path: Path, missing: str = "refuse") -> AttributedGraph:
    """The graph in a file of `dgl.save_graphs`, ``ndata["feat"]`` and ``ndata["label"]``.

    DGL reads such files by C++ code and unpickles nothing. On damaged ones that code may end the
    process, or ask for any amount of memory, so it runs in another one, which DGL's import takes
    seconds to start.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.matrices.as_features`.

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        File unreadable or damaged, several graphs, or several types of nodes or edges.
    """
    path = Path(path)
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    # What this process can import, the other one can.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", _CHILD, str(path.absolute()), str(path), missing, folder],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            answer = json.loads(Path(folder, _ANSWER).read_text())
        except (OSError, ValueError):
            raise InputError(
                f"{path}: DGL cannot read it: is it damaged, or no file of dgl.save_graphs?"
            ) from None
        if "error" in answer:
            raise InputError(answer["error"])
        return replace(load_npz(Path(folder, _GRAPH)), notes=tuple(answer["notes"]))


def _convert(path: str, source: str, missing: str, folder: str) -> None:
    """What the other process does."""
    try:
        from user_dgl.data.dgl_datasets import attributed_graph, dgl

        # DGL fills whatever sizes a file claims.
        most = int(process_status("VmSize:") + 1e6 * available_memory_mb())
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            graphs = dgl.load_graphs(path)[0]
        except Exception:  # DGL's own and what its bindings raise; the message is a C++ trace
            raise InputError(
                f"{source}: no file of dgl.save_graphs, or damaged: save it anew"
            ) from None
        if len(graphs) != 1:
            raise InputError(f"{source}: holds {len(graphs)} graphs, expected one")
        data = attributed_graph(graphs[0], source, missing)
        with open(Path(folder, _GRAPH), "wb") as file:
            write_npz(file, data)
        answer = {"notes": data.notes}
    except InputError as error:
        answer = {"error": str(error)}
    Path(folder, _ANSWER).write_text(json.dumps(answer))

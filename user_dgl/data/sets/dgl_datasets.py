"""Node-classification sets of `dgl.data`, by the name of their class."""

import contextlib
import difflib
import inspect
import sys
import zipfile
from pathlib import Path

from user_dgl._dgl import dgl
from user_dgl.data.attributed_graph import AttributedGraph, one_line
from user_dgl.data.formats.dgl_file import attributed_graph, graph_parts
from user_dgl.errors import InputError

# Network and files (the first two and BadZipFile), DGL's own, and a package that DGL lacks.
_FAULTS = (OSError, RuntimeError, ValueError, ImportError, zipfile.BadZipFile, dgl.DGLError)


def load_dgl_dataset(
    name: str, raw_folder: Path | None = None, missing: str = "refuse", trusted: bool = False
) -> AttributedGraph:
    """Graph, ``ndata["feat"]`` and ``ndata["label"]`` of a data set of `dgl.data`.

    DGL downloads what is not in ``raw_folder`` and stores a processed copy there. It reads pickles
    without checks, and so a file can run any code: what lies there already has to be trusted.
    `load_planetoid` and `load_npz` read the same files safely.

    Parameters
    ----------
    name : str
        Class of `dgl.data`, such as ``CoraGraphDataset``.
    raw_folder : Path, optional
        DGL's ``raw_dir``; None: DGL's own folder, ``~/.dgl``.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.
    trusted : bool
        Whether DGL may read what is in ``raw_folder``.

    Returns
    -------
    AttributedGraph
        Features or labels are None where the data set has none, or several labels a node.

    Raises
    ------
    InputError
        Files in the folder that are not trusted, no such class, a class that needs more arguments,
        a download that failed or files missing, several graphs, or several types of nodes or edges.
    """
    dataset_class = _find_class(name)
    accepted = inspect.signature(dataset_class).parameters
    needed = [
        p.name for p in accepted.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL
    ]
    if needed:
        raise InputError(
            f"data.name={name}: dgl.data.{name} needs {', '.join(needed)}: name a class that holds "
            "one graph, such as CoraGraphDataset"
        )
    if raw_folder is not None and not trusted and any(raw_folder.iterdir()):
        raise InputError(
            f"{raw_folder}: DGL unpickles what it finds there, and a pickle can run any code: set "
            "data.trusted=true if you know where every file of it comes from, or read the files "
            "with data.kind=planetoid or npz"
        )
    arguments = {"verbose": False, "raw_dir": None if raw_folder is None else str(raw_folder)}
    dataset = dataset_class.__new__(dataset_class)  # apart, to ask it for its URL after a failure
    try:
        with contextlib.redirect_stdout(sys.stderr):  # where DGL reports its downloads
            dataset.__init__(**{k: v for k, v in arguments.items() if k in accepted})
    except _FAULTS as error:
        raise _load_error(name, dataset, raw_folder, error) from None
    if len(dataset) != 1:
        raise InputError(f"data.name={name}: holds {len(dataset)} graphs, expected one")
    source = f"dgl.data.{name}"
    return attributed_graph(graph_parts(dataset[0], source), source, missing)


def _find_class(name: str) -> type:
    found = getattr(dgl.data, name, None)
    if inspect.isclass(found) and issubclass(found, dgl.data.DGLDataset):
        return found
    # Compared without the ending that nearly all share: `cora` should find CoraGraphDataset.
    known = {n.removesuffix("Dataset").lower(): n for n in dir(dgl.data) if n.endswith("Dataset")}
    wanted = name.removesuffix("Dataset").lower()
    close = [n for short, n in known.items() if wanted and short.startswith(wanted)] or [
        known[short] for short in difflib.get_close_matches(wanted, known, n=3)
    ]
    hint = f": did you mean {' or '.join(close[:3])}?" if close else ""
    raise InputError(f"data.name={name}: no class of dgl.data{hint}")


def _load_error(name: str, dataset, raw_folder: Path | None, error: Exception) -> InputError:
    problem = one_line(error)
    if isinstance(error, ImportError):
        return InputError(f"dgl.data.{name}: needs a package that is missing ({problem})")
    where = "its files"
    # Attributes of the instance, known before DGL turns to the files.
    if getattr(dataset, "_url", None):
        where = f"the unpacked {dataset.url}"
    if getattr(dataset, "_raw_dir", None) is not None:
        where += f" in {dataset.raw_path}"
    else:
        where += " in a folder and name it with data.path"
    if raw_folder is not None:
        where += ", and set data.trusted=true"
    return InputError(f"dgl.data.{name}: cannot be loaded ({problem}): put {where}")

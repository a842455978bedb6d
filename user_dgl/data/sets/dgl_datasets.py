"""Load a node-classification data set of `dgl.data` by the name of its class."""

import contextlib
import difflib
import inspect
import sys
import zipfile
from pathlib import Path
from typing import Any

from user_dgl._dgl import dgl
from user_dgl.data.attributed_graph import AttributedGraph, one_line
from user_dgl.data.formats.dgl_file import attributed_graph, graph_parts
from user_dgl.errors import InputError

# Errors of the network and of files (OSError, RuntimeError, BadZipFile), DGL's own errors, and a
# missing package that DGL needs (ImportError).
_FAULTS = (OSError, RuntimeError, ValueError, ImportError, zipfile.BadZipFile, dgl.DGLError)


def load_dgl_dataset(
    name: str, raw_folder: Path | None = None, missing: str = "refuse", trusted: bool = False
) -> AttributedGraph:
    """Load the graph of a data set of `dgl.data`, with ``ndata["feat"]`` and ``ndata["label"]``.

    DGL downloads files that are not in ``raw_folder`` and stores a processed copy there. It reads
    pickles without checks, so a file can run any code. Therefore the files that are already in the
    folder must be trusted. `load_planetoid` and `load_npz` read the same files safely.

    Parameters
    ----------
    name : str
        Name of a class of `dgl.data`, such as ``CoraGraphDataset``.
    raw_folder : Path, optional
        DGL's ``raw_dir``. None means DGL's own folder, ``~/.dgl``.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.
    trusted : bool
        Whether DGL may read files that are already in ``raw_folder``.

    Returns
    -------
    AttributedGraph
        Features or labels are None if the data set has none. Labels are also None if it has
        several labels per node.

    Raises
    ------
    InputError
        The class does not exist or needs more arguments; the folder has files that are not trusted;
        a download failed or files are missing; the data set has several graphs, or its graph has
        several types of nodes or edges.
    """
    dataset_class = _find_class(name)
    accepted = inspect.signature(dataset_class).parameters
    needed = [
        p.name for p in accepted.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL
    ]
    if needed:
        raise InputError(
            f"data.name={name}: dgl.data.{name} needs {', '.join(needed)}: name a class of a data "
            "set with one graph, such as CoraGraphDataset"
        )
    if raw_folder is not None and not trusted and any(raw_folder.iterdir()):
        raise InputError(
            f"{raw_folder}: DGL unpickles the files in this folder, and a pickle can run any code: "
            "set data.trusted=true if you know where every file comes from, or read the files with "
            "data.kind=planetoid or npz"
        )
    arguments = {"verbose": False, "raw_dir": None if raw_folder is None else str(raw_folder)}
    # Without __init__, so that the object can still name its URL if __init__ fails.
    dataset = dataset_class.__new__(dataset_class)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # DGL reports its downloads on stdout
            dataset.__init__(**{k: v for k, v in arguments.items() if k in accepted})
    except _FAULTS as error:
        raise _load_error(name, dataset, raw_folder, error) from None
    if len(dataset) != 1:
        raise InputError(f"data.name={name}: holds {len(dataset)} graphs, expected one")
    source = f"dgl.data.{name}"
    return attributed_graph(graph_parts(dataset[0], source), source, missing)


def _find_class(name: str) -> Any:
    """Return a class of `dgl.data`. DGL has no type information."""
    found = getattr(dgl.data, name, None)
    if inspect.isclass(found) and issubclass(found, dgl.data.DGLDataset):
        return found
    # Nearly all names end in Dataset. They are compared without it, so that `cora` finds
    # CoraGraphDataset.
    known = {n.removesuffix("Dataset").lower(): n for n in dir(dgl.data) if n.endswith("Dataset")}
    wanted = name.removesuffix("Dataset").lower()
    close = [n for short, n in known.items() if wanted and short.startswith(wanted)] or [
        known[short] for short in difflib.get_close_matches(wanted, known, n=3)
    ]
    hint = f": did you mean {' or '.join(close[:3])}?" if close else ""
    raise InputError(f"data.name={name}: not a data set class of dgl.data{hint}")


def _load_error(name: str, dataset: Any, raw_folder: Path | None, error: Exception) -> InputError:
    problem = one_line(error)
    if isinstance(error, ImportError):
        return InputError(f"dgl.data.{name}: needs a package that is missing ({problem})")
    where = "its files"
    # DGL sets these attributes before it reads or downloads files.
    if getattr(dataset, "_url", None):
        where = f"the unpacked {dataset.url}"
    if getattr(dataset, "_raw_dir", None) is not None:
        where += f" in {dataset.raw_path}"
    else:
        where += " in a folder and name it with data.path"
    if raw_folder is not None:
        where += ", and set data.trusted=true"
    return InputError(f"dgl.data.{name}: cannot be loaded ({problem}): put {where}")

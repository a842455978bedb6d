"""Fuzz readers of users' files: ``python tools/fuzz_readers.py readers|config [--seconds 600]``.

Atheris (``pip install ".[fuzz]"``) mutates small valid files of every format, guided by the lines
of this package, PyYAML and networkx that they reach. Whatever a file holds, it must load or be
refused by an `InputError` of one line. Each other exception, told apart by where it was raised, is
printed once and its input kept in the folder ``--out``. An input that takes more than 10 seconds
or 2 GB, or ends the process, ends the fuzzing and is kept too. Exit status: 0 nothing was found, 1
something was. ``--replay FILE`` runs a kept input again.
"""

import argparse
import gzip
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["user_dgl", "yaml", "networkx.readwrite", "numpy.lib"]):
    import user_dgl.data.reading.files
    import user_dgl.data.reading.sandbox
    from user_dgl.config import load_config, to_yaml
    from user_dgl.data import load_edge_list
    from user_dgl.errors import InputError

import networkx as nx
import numpy as np
import scipy.io
import scipy.sparse as sp
import torch

from user_dgl._dgl import dgl

SECONDS, MEGABYTES = 10, 2048
# Memory that readers are told is available, so that they refuse a file before the fuzzer ends.
AVAILABLE_MB = 800.0
CONFIGS = Path(__file__).resolve().parents[1] / "configs"
# Separates the YAML of a config and each of its overrides in an input.
SEPARATOR = b"\xff"
# Separates names and contents of arrays in an input. They are zipped afterwards, because a mutation
# inside a zip file would only make its checksum wrong.
UNZIPPED, BETWEEN = ".unzipped", b"\xffmember\xff"

NODES = 6
U, V = np.array([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]).T
ADJACENCY = sp.csr_matrix((np.ones(len(U)), (U, V)), shape=(NODES, NODES))
FEATURES = (np.arange(NODES * 2).reshape(NODES, 2) % 5).astype(np.float32)
LABELS = np.arange(NODES) // 3


def saved(save: Callable, *arguments, **keywords) -> bytes:
    """Return the bytes that a function writes into a file."""
    file = io.BytesIO()
    save(file, *arguments, **keywords)
    return file.getvalue()


def graphml() -> bytes:
    """A GraphML file with features and labels."""
    graph = nx.Graph()
    for node in range(NODES):
        graph.add_node(node, feat_0=float(node), feat_1=0.5, label=f"c{LABELS[node]}")
    graph.add_edges_from(zip(U.tolist(), V.tolist(), strict=True), weight=1.0)
    return saved(lambda file: nx.write_graphml(graph, file))


def of_networkx() -> Iterator[tuple[str, bytes]]:
    """Yield ending and content of the formats that networkx reads, and of its lists."""
    graph = nx.Graph(zip(U.tolist(), V.tolist(), strict=True))
    for node in graph:
        graph.nodes[node]["feat_0"] = float(node)
    yield ".gml", saved(lambda file: nx.write_gml(graph, file))
    yield ".gexf", saved(lambda file: nx.write_gexf(graph, file))
    yield ".net", saved(lambda file: nx.write_pajek(nx.Graph(graph.edges), file))
    yield ".net", b'*Vertices 3\n1 "a"\n2 "b c"\n3 c\n*Arcs :1 "x"\n1 2 1\n*Edges\n2 3\n'
    yield ".json", json.dumps(nx.node_link_data(graph, edges="links")).encode()
    yield ".adjlist", saved(lambda file: nx.write_adjlist(graph, file))
    nx.set_edge_attributes(graph, {pair: {"a": 1, "b": "c, d"} for pair in graph.edges})
    yield ".csv", saved(lambda file: nx.write_edgelist(graph, file))
    yield ".csv", saved(lambda file: nx.write_edgelist(nx.grid_2d_graph(3, 2), file, data=False))


def tables() -> Iterator[bytes]:
    """Yield texts of edges in other layouts than two columns."""
    dense = ADJACENCY.toarray().astype(int).tolist()
    yield rows(" ", *zip(*dense, strict=True))
    yield b";a;b;c;d;e;f\n" + rows(";", "abcdef", *zip(*dense, strict=True))
    yield b'"from" "to" "weight"\n' + rows(" ", range(len(U)), U, V, U / 4)
    yield b",node_from,node_to\n" + rows(",", range(len(U)), U, V) + b"7,NA,2\n"
    yield rows("\t", [f"g{u}" for u in U], ["pp"] * len(U), [f"g{v}" for v in V])
    yield rows(" ", U, V, range(len(U)))
    yield b"source,target\n0,1.0\n2,1e+05\nsource,target\n'3','4'\n"
    yield b'source,target\n"#a",b\nb,"%c"\n'


def dgl_file(folder: Path) -> bytes:
    """A file of `dgl.save_graphs`."""
    graph = dgl.graph((torch.from_numpy(U), torch.from_numpy(V)), num_nodes=NODES)
    graph.ndata["feat"], graph.ndata["label"] = torch.from_numpy(FEATURES), torch.from_numpy(LABELS)
    dgl.save_graphs(str(folder / "seed.bin"), [graph])
    return (folder / "seed.bin").read_bytes()


def rows(separator: str, *columns) -> bytes:
    """Delimited text."""
    lines = zip(*columns, strict=True)
    return "".join(separator.join(map(str, line)) + "\n" for line in lines).encode()


def valid_files(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield for each file: its part (edges, features, ...), its ending and its content."""
    text, boxed = rows(",", U, V), np.empty((), dtype=object)
    boxed[()] = ADJACENCY
    parts = {p: getattr(ADJACENCY, p) for p in ("data", "indices", "indptr", "shape")}
    mat = {"W": ADJACENCY, "fea": FEATURES, "gnd": LABELS}
    mtx = b"%%MatrixMarket matrix coordinate pattern symmetric\n% c\n6 6 3\n2 1\n3 1\n5 4\n"
    yield "edges", ".csv", text
    yield "edges", ".csv", b"\xef\xbb\xbf# c\r\nsrc;dst;weight\r\n1;2;0.5\r\n2;3;0\r\n"
    yield "edges", ".csv", b'"a b"\t007\n7\t"x"\n\n% c\n007\t7\n'
    yield "edges", ".csv", gzip.compress(text)
    yield "edges", ".npz", saved(sp.save_npz, ADJACENCY)
    yield "edges", ".npz", saved(sp.save_npz, sp.coo_matrix(ADJACENCY), compressed=False)
    yield (
        "edges",
        ".npz",
        saved(np.savez, labels=LABELS, **{f"adj_{k}": v for k, v in parts.items()}),
    )
    yield "edges", ".npz", saved(np.savez, adj_matrix=boxed, node_attr=FEATURES, node_label=LABELS)
    yield "edges", ".npy", saved(np.save, np.stack([U, V], 1))
    yield "edges", ".npy", saved(np.save, ADJACENCY.toarray())
    yield "edges", ".mtx", mtx
    yield "edges", ".mtx", gzip.compress(mtx)
    yield "edges", ".mtx", saved(scipy.io.mmwrite, ADJACENCY.toarray())
    yield "edges", ".mat", saved(scipy.io.savemat, mat)
    yield "edges", ".mat", saved(scipy.io.savemat, mat, do_compression=True)
    yield "edges", ".mat", saved(scipy.io.savemat, mat, format="4")
    yield "edges", ".graphml", graphml()
    yield "edges", ".bin", dgl_file(folder)
    for ending, content in of_networkx():
        yield "edges", ending, content
    for content in tables():
        yield "edges", ".csv", content
    yield "features", ".csv", rows(",", range(NODES), *FEATURES.T)
    yield "features", ".csv", b"id;f0;f1\n" + rows(";", range(NODES), *FEATURES.T)
    yield "features", ".npy", saved(np.save, FEATURES)
    yield "features", ".npz", saved(np.savez, x=FEATURES, ids=np.arange(NODES))
    yield "features", ".npz", saved(sp.save_npz, sp.csr_matrix(FEATURES))
    yield "features", ".mat", saved(scipy.io.savemat, {"X": sp.csc_matrix(FEATURES)})
    yield "features", ".mtx", saved(scipy.io.mmwrite, sp.coo_matrix(FEATURES))
    yield "features", ".csv", b",f0,node_id,label\n" + rows(",", U, V / 2, range(7), U)
    yield "labels", ".csv", rows(" ", LABELS)
    yield "labels", ".csv", b'"node" "label"\n' + rows(" ", range(1, 7), range(NODES), LABELS)
    yield "labels", ".csv", b"node,label\n" + rows(",", range(NODES), LABELS)
    yield "labels", ".npy", saved(np.save, LABELS)
    yield "labels", ".npz", saved(np.savez, y=LABELS, ids=np.arange(NODES).astype(str))
    yield "labels", ".mat", saved(scipy.io.savemat, {"gnd": LABELS})


KINDS = [
    *((part, UNZIPPED) for part in ("edges", "features", "labels")),
    *(("edges", e) for e in (".csv", ".npz", ".npy", ".mtx", ".mat", ".graphml", ".bin")),
    *(("edges", e) for e in (".gml", ".gexf", ".net", ".json", ".adjlist")),
    *(("features", e) for e in (".csv", ".npy", ".npz", ".mat", ".mtx")),
    *(("labels", e) for e in (".csv", ".npy", ".npz", ".mat")),
]


class Readers:
    """Inputs are one byte, the kind of file, and the content of the file."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.others = folder / "edges.csv"
        self.others.write_bytes(rows(",", U, V))
        for module in (user_dgl.data.reading.files, user_dgl.data.reading.sandbox):
            module.available_memory_mb = lambda: AVAILABLE_MB
        user_dgl.data.reading.sandbox._answer = _unwatched(user_dgl.data.reading.sandbox._answer)

    def seeds(self) -> Iterator[bytes]:
        """Valid inputs."""
        for part, ending, content in valid_files(self.folder):
            yield bytes([KINDS.index((part, ending))]) + content
            if ending == ".npz":
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    names = archive.namelist()
                    members = [archive.read(name) for name in names]
                unzipped = BETWEEN.join([",".join(names).encode(), *members])
                yield bytes([KINDS.index((part, UNZIPPED))]) + unzipped

    def run(self, data: bytes) -> None:
        """Read one input."""
        part, ending = KINDS[data[0] % len(KINDS)] if data else KINDS[0]
        path = self.folder / ("fuzzed.npz" if ending == UNZIPPED else f"fuzzed{ending}")
        if ending == UNZIPPED:
            names, *members = data[1:].split(BETWEEN)
            with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of equal names
                for name, member in zip(names.split(b","), members, strict=False):
                    name = name.decode(errors="replace").partition("\0")[0]
                    archive.writestr(name or "none", member)
        else:
            path.write_bytes(data[1:])
        load_edge_list(**{"edges": self.others, part: path}, missing="zero")


def _unwatched(answer: Callable) -> Callable:
    """Run a reader in another process without libFuzzer's handlers; its end is no fault."""

    def run(*arguments) -> None:
        for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV):
            signal.signal(number, signal.SIG_DFL)
        answer(*arguments)

    return run


class Configs:
    """Inputs are the YAML of a config and overrides, with `SEPARATOR` between them."""

    def __init__(self, folder: Path):
        # Where the configs of a folder look for those that they extend.
        copy = shutil.copytree(CONFIGS, folder / "configs")
        self.path = copy / "fuzzed" / "fuzzed.yaml"
        self.path.parent.mkdir()

    def seeds(self) -> Iterator[bytes]:
        """Valid inputs."""
        overrides = (b"seed=3", b"data={kind: npz, path: a.npz}", b"train.lr=1e-3", b"output_dir=~")
        for file in sorted(CONFIGS.rglob("*.yaml")):
            content = file.read_bytes()
            if file.parent == CONFIGS:
                content = content.replace(b"extends: ", b"extends: ../")
            yield SEPARATOR.join((content, *overrides))
        yield to_yaml(load_config(None)).encode()

    def run(self, data: bytes) -> None:
        """Read one input; accepted settings must stay the same when written and read again."""
        content, *overrides = data.split(SEPARATOR)
        self.path.write_bytes(content)
        config = load_config(self.path, [o.decode(errors="surrogateescape") for o in overrides])
        config.inert_settings()
        self.path.write_text(to_yaml(config), encoding="utf-8")
        if load_config(self.path) != config:
            raise AssertionError("the settings written are not those that were read")


class Judge:
    """Run inputs and keep those that raise an unexpected exception."""

    def __init__(self, target: Readers | Configs, out: Path):
        self.target, self.out = target, out
        self.known: set[str] = set()

    def __call__(self, data: bytes) -> None:
        """Run one input."""
        try:
            self.target.run(data)
        except InputError as error:
            if not 10 < len(str(error)) < 2000 or not str(error).isprintable():
                self.keep(data, error, "an unusable message")
        except Exception as error:
            self.keep(data, error, type(error).__name__)

    def keep(self, data: bytes, error: Exception, kind: str) -> None:
        """Report a fault once; faults are identified by the place where they are raised."""
        at = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{kind} at {at.filename}:{at.lineno}"
        if fault in self.known:
            return
        self.known.add(fault)
        file = self.out / f"fault-{len(self.known)}"
        file.write_bytes(data)
        print(f"FAULT {file}: {fault}\n{traceback.format_exc()}", flush=True)


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=("readers", "config"))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("outputs/fuzz"))
    parser.add_argument("--replay", type=Path, metavar="FILE")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = set(options.out.iterdir())
    with tempfile.TemporaryDirectory() as folder:
        target = (Readers if options.target == "readers" else Configs)(Path(folder))
        if options.replay:
            target.run(options.replay.read_bytes())
            return 0
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, content in enumerate(target.seeds()):
            target.run(content)  # a seed is valid
            (corpus / str(number)).write_bytes(content)
        libfuzzer = [
            sys.argv[0], str(corpus), f"-max_total_time={options.seconds}", f"-seed={options.seed}",
            f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-artifact_prefix={options.out}/",
            "-max_len=20000", "-print_final_stats=1",
        ]  # fmt: skip
        child = os.fork()
        if not child:
            atheris.Setup(libfuzzer, Judge(target, options.out))
            atheris.Fuzz()  # ends the process
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    faults = sorted(set(options.out.iterdir()) - kept)
    print(f"{len(faults)} faults{': ' if faults else ''}{', '.join(map(str, faults))}")
    return 1 if faults or status else 0


if __name__ == "__main__":
    sys.exit(main())

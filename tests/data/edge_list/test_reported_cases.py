"""Files as people reported them: read right or refused, as the table beside them says."""

import csv
import re

import pytest
from graph_files import notes

from user_dgl.cli import main
from user_dgl.data import load_edge_list
from user_dgl.errors import InputError
from user_dgl.output.run_directory import RunDirectory


@pytest.fixture(scope="session")
def reports(cases_root):
    """The rows of the table, by the names of their files."""
    folder = cases_root / "reports"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing")
    with open(folder / "cases.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return folder, {(row["edges"], row["features"]): row for row in rows}


# The files that the table had when this test was written; `test_no_row_is_forgotten` finds others.
ROWS = [
    *((name, "") for name in (
        "links.csv", "dest_only.csv", "source_label.csv", "mail.csv", "matrix_plain.csv",
        "matrix_named.csv", "similarity.csv", "one_attr.edgelist", "two_attr.edgelist",
        "grid_tuples_nodata.edgelist", "edges_pylist.txt", "network.sif", "graph.nt",
        "pajek_arcs1.net", "g.net", "g.gml", "g.gexf", "g.json", "g_metis.graph",
        "ring_metis.graph", "igraph_names.graphml", "na_R.csv", "float_target.csv", "sci.csv",
        "hashtags.csv", "concat_header.csv", "time_zero.txt", "edges_R.txt", "weighted_comma.csv",
    )),
    *(("big_edges.csv", f"big_F_{name}.csv") for name in (
        "right", "rangeindex", "id_last", "noise_label", "income",
    )),
]  # fmt: skip


def test_no_row_is_forgotten(reports):
    assert set(ROWS) == set(reports[1])


@pytest.mark.parametrize("name", ROWS, ids=lambda name: name[1] or name[0])
def test_reported_file_is_read_right_or_refused(name, reports):
    folder, rows = reports
    row = rows[name]
    files = [row[part] and folder / row[part] for part in ("edges", "features", "labels")]
    data = refusal = None
    try:
        data = load_edge_list(*(path or None for path in files))
    except InputError as error:
        refusal = str(error)
    if data is None:
        assert row["otherwise"] == "refuse"
        assert re.match(r"\S+: \S", refusal)
        assert "\n" not in refusal
        return
    assert data.num_nodes == int(row["nodes"])
    if row["num_edges"]:
        assert data.graph.num_edges == int(row["num_edges"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mail.csv", r"\[from_name, to_name\] or \[from_email, to_email\].*set data\.columns="),
        ("hashtags.csv", "set data.comment=true .* or data.comment=false"),
        ("edges_pylist.txt", "pairs as Python or JSON prints them: convert it: python -c"),
        ("ring_metis.graph", r"a METIS file, or edges \(data\.layout=pairs\).* convert it: awk"),
        ("g_metis.graph", "a METIS file.* convert it: awk"),
    ],
)
def test_what_is_refused_says_what_to_do(name, message, reports):
    with pytest.raises(InputError, match=message):
        load_edge_list(reports[0] / name)


def test_what_is_refused_is_read_with_the_option_that_is_named(reports):
    folder = reports[0]

    def size(name, **options):
        data = load_edge_list(folder / name, **options)
        return data.num_nodes, data.graph.num_edges

    assert size("mail.csv", columns=("from_email", "to_email")) == (36, 109)
    assert size("mail.csv", columns=(1, 3)) == (36, 109)
    assert size("hashtags.csv", comment=False) == (52, 109)
    assert size("hashtags.csv", comment=True) == (48, 55)
    assert size("ring_metis.graph", layout="pairs") == (30, 30)


@pytest.mark.parametrize("name", ["right", "rangeindex", "id_last", "noise_label", "income"])
def test_reported_features(name, reports):
    folder = reports[0]
    edges, labels = folder / "big_edges.csv", folder / "big_L.csv"
    data = load_edge_list(edges, folder / f"big_F_{name}.csv", labels)
    assert data.feat.shape == (120, 9 if name == "income" else 8)
    said = {
        "rangeindex": r"column 1 \(''\) left out: it numbers rows",
        "id_last": "features joined by the ids in column 'node_id'",
        "noise_label": "column 'label' left out of the features, because labels must not be train",
    }
    assert re.search(said.get(name, "joined by the ids"), notes(data))
    if name in ("rangeindex", "id_last"):
        right = load_edge_list(edges, folder / "big_F_right.csv", labels)
        assert (data.feat != right.feat).nnz == 0


@pytest.mark.parametrize("name", ["right", "rangeindex", "id_last", "noise_label"])
def test_training_on_reported_features(name, reports, tmp_path):
    folder, rows = reports
    row = rows["big_edges.csv", f"big_F_{name}.csv"]
    arguments = [f"--{part}={folder / row[part]}" for part in ("edges", "features", "labels")]
    assert main(["train", *arguments, "--clusters", "3", f"output_dir={tmp_path / 'run'}"]) == 0
    nmi = RunDirectory(tmp_path / "run").read_result()["metrics"]["nmi"]
    # The features of noise_label are noise: only its labels, if they were trained on, give more.
    assert nmi < 30 if name == "noise_label" else nmi >= float(row["nmi"])

"""Features and labels whose ids are not the first column, and columns that are no features."""

import numpy as np
import pandas as pd
import pytest
from edge_lists import by_id
from graph_files import notes

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError

N = 8
VALUES = np.round(np.random.default_rng(0).normal(size=(N, 2)), 3)
ORDER = [3, 7, 0, 5, 1, 6, 2, 4]
IDS = {"whole": lambda i: str(i), "gaps": lambda i: str(100 + 7 * i), "text": lambda i: f"p{i}"}


@pytest.fixture(params=IDS)
def ids(request):
    return IDS[request.param]


@pytest.fixture
def load(tmp_path, ids):
    """Loads a ring with features or labels in a frame, or in text."""

    def read(features=None, labels=None, **options):
        ring = "".join(f"{ids(i)},{ids((i + 1) % N)}\n" for i in range(N))
        (tmp_path / "e.csv").write_text("source,target\n" + ring)
        paths = []
        for name, content in (("f.csv", features), ("l.csv", labels)):
            if isinstance(content, pd.DataFrame):
                content = content.to_csv(**options)
            if content is not None:
                (tmp_path / name).write_text(content)
            paths.append(content and tmp_path / name)
        return load_edge_list(tmp_path / "e.csv", *paths)

    return read


@pytest.fixture
def frame(ids):
    """Features of the nodes in another order, with a column of ids."""
    table = pd.DataFrame(VALUES[ORDER], columns=["f0", "f1"])
    table.insert(0, "node_id", [ids(i) for i in ORDER])
    return table


def right(data, ids):
    return by_id(data) == {ids(i): np.float32(VALUES[i]).tolist() for i in range(N)}


@pytest.mark.parametrize("name", ["node_id", "id", "Node", "name", "nodeId", "user_id"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_column_of_the_ids_is_found_by_its_name(name, place, frame, load, ids):
    frame.insert(place, name, frame.pop("node_id"))
    assert right(load(frame, index=False), ids)
    for index in (None, "index", "Unnamed: 0"):
        data = load(frame.rename_axis(index))
        assert right(data, ids)
        assert "left out: it numbers rows" in notes(data)
    # R: names of the rows without a name of their own.
    assert right(load(frame.to_csv(sep=" ").lstrip(" ")), ids)


def test_the_index_of_a_frame_holds_the_ids(frame, load, ids):
    frame = frame.set_index("node_id")
    assert right(load(frame, index_label=False), ids)
    assert right(load(frame, index_label=""), ids)
    assert right(load(frame, header=False), ids)


def test_ids_that_no_name_tells(frame, load, ids):
    shuffled = frame[["f0", "node_id", "f1"]]
    refusal = (
        "has text, such as" if ids(0) == "p0" else "may hold the ids of the nodes: write `node`"
    )
    with pytest.raises(InputError, match=refusal):
        load(shuffled, index=False, header=False)
    with pytest.raises(InputError, match=refusal):
        load(shuffled.rename(columns={"node_id": "gene"}), index=False)
    if ids(0) == "0":
        with pytest.raises(InputError, match="columns 1 and 2 may hold the ids of the nodes"):
            load(frame, header=False)
    frame["id"] = frame["node_id"]
    with pytest.raises(InputError, match="columns 'node_id' and 'id' may hold the ids"):
        load(frame, index=False)
    frame["id"] = 5
    assert right(load(frame[["node_id", "id", "f0", "f1"]].drop(columns="id"), index=False), ids)


@pytest.mark.parametrize(
    "name",
    [
        "label",
        "Class",
        "y",
        "target",
        "community",
        "cluster",
        "group",
        "true_label",
        "y_true",
        "cluster_id",
        "communityId",
        "class_name",
        "true_y",
    ],
)
def test_labels_among_the_features_are_left_out(name, frame, load, ids):
    for values in (range(N), [f"c{i % 2}" for i in range(N)]):
        frame[name] = list(values)
        data = load(frame, index=False)
        assert right(data, ids)
        assert f"column '{name}' left out of the features, because labels must" in notes(data)
    only = frame[["node_id", name]]
    with pytest.raises(InputError, match="no column of features is left: column"):
        load(only, index=False)


def test_coordinates_and_booleans_are_features(frame, load):
    frame = frame.rename(columns={"f0": "x", "f1": "y"})
    frame["member"] = [True, False] * 4
    data = load(frame, index=False)
    assert data.feat.shape == (N, 3)
    assert set(data.feat.toarray()[:, 2].tolist()) == {0, 1}


@pytest.mark.parametrize(
    "names",
    ["node,label", "name,club", "Id,Modularity Class", "id,target", "node_id,y", "user_id,z"],
)
def test_columns_of_labels(names, load, ids):
    first, second = names.split(",")
    table = pd.DataFrame({first: [ids(i) for i in ORDER], second: [i % 3 for i in ORDER]})
    swapped, long = table[[second, first]], table.assign(weight=0.5)
    for read in (
        load(None, table, index=False),
        load(None, table),
        load(None, swapped, index=False),
        load(None, table.to_csv(sep=" ").lstrip(" ")),
    ):
        found = dict(zip(read.node_ids or map(str, range(N)), read.labels.tolist(), strict=True))
        assert found == {ids(i): i % 3 for i in range(N)}
    if second == "z":
        with pytest.raises(InputError, match="3 columns: expected `label` or `id label` lines, or"):
            load(None, long, index=False)


def test_row_names_of_r_above_one_column(load, ids):
    rows = "".join(f'"{ids(i)}" "c{i % 2}"\n' for i in ORDER)
    name = "x"
    if ids(0) == "p0":  # then the first row may be an id without label, unless its name is known
        with pytest.raises(InputError, match=":2: 2 columns, expected 1 as in line 1"):
            load(None, '"x"\n' + rows)
        name = "label"
    data = load(None, f'"{name}"\n' + rows)
    found = dict(zip(data.node_ids or map(str, range(N)), data.labels.tolist(), strict=True))
    assert found == {ids(i): i % 2 for i in range(N)}


def test_other_ids_and_names_are_no_features(frame, load, ids):
    for name, values in (("name", [f"N {i}" for i in ORDER]), ("id", range(40, 40 + N))):
        data = load(frame.assign(**{name: values}), index=False)
        assert right(data, ids)
        assert f"column '{name}' left out: it holds other ids or names" in notes(data)

"""Columns of text in a file of features: categories where that is asked for, else refused."""

import numpy as np
import pytest

from user_dgl.cli import main
from user_dgl.config import load_config
from user_dgl.data import load_data, load_edge_list
from user_dgl.errors import InputError

EDGES = "source,target\na,b\nb,c\nc,a\n"
TABLE = "id,colour,size,flag\na,red,1.5,true\nb,blue,2.5,false\nc,red,3.5,true\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "features.csv").write_text(TABLE)
    return tmp_path / "edges.csv", tmp_path / "features.csv"


def test_file(files):
    data = load_edge_list(*files, categorical="one_hot")
    expected = [[1.5, 1, 0, 1], [2.5, 0, 1, 0], [3.5, 1, 0, 1]]
    np.testing.assert_array_equal(data.feat.toarray(), expected)
    assert any("categories in column 'colour' became 2 columns" in note for note in data.notes)
    with pytest.raises(
        InputError, match=r"features.csv:2: column 'colour' has text, .*'red': .*=one"
    ):
        load_edge_list(*files)


@pytest.mark.parametrize("cells", ["0,1,1", "0.5 -1e-3 2", "[1; 2]"])
def test_numbers_in_one_cell_are_no_categories(files, cells):
    edges, features = files
    features.write_text("id\tfeature\n" + "".join(f"{name}\t{cells}\n" for name in "abc"))
    with pytest.raises(InputError, match="each of its numbers in a column of its own"):
        load_edge_list(edges, features)


def test_a_date_is_a_category(files):
    edges, features = files
    features.write_text("id\tseen\n" + "".join(f"{name}\t2020-01-01 12\n" for name in "abc"))
    with pytest.raises(InputError, match=r"features\.categorical=one_hot"):
        load_edge_list(edges, features)


def test_rows_stay_with_their_ids(files):
    """The rows of the file are in another order than the nodes."""
    edges, features = files
    lines = TABLE.splitlines()
    features.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    data = load_edge_list(edges, features, categorical="one_hot")
    np.testing.assert_array_equal(data.feat.toarray()[:, 0], [1.5, 2.5, 3.5])
    np.testing.assert_array_equal(data.feat.toarray()[:, 2:], [[0, 1], [1, 0], [0, 1]])


def test_a_stray_text_is_a_mistake_and_no_category(files):
    edges, features = files
    features.write_text("id,size\na,1\nb,big\nc,2\n")
    with pytest.raises(InputError, match=r"features.csv:3: column 2: 'big' is not a number"):
        load_edge_list(edges, features, categorical="one_hot")
    features.write_text(TABLE.replace("blue", ""))
    with pytest.raises(InputError, match="1 categories are missing"):
        load_edge_list(edges, features, categorical="one_hot")


def test_setting(files, tmp_path, capsys):
    settings = [
        "data.kind=edge_list",
        f"data.edges={files[0]}",
        f"data.features={files[1]}",
        "features.categorical=one_hot",
    ]
    config = load_config(None, settings)
    assert load_data(config.data, config.features.categorical).feat.shape == (3, 4)
    assert config.inert_settings() == []
    (line,) = load_config(None, settings[-1:]).inert_settings()
    assert "features.categorical=one_hot has no effect with data.kind=synthetic" in line
    command = ["inspect", str(files[0]), "--features", str(files[1])]
    assert main([*command, "features.categorical=one_hot"]) == 0
    assert "4 columns" in capsys.readouterr().out
    assert main(command) == 2
    assert "features.categorical=one_hot" in capsys.readouterr().err


def test_missing_categories_are_no_category(files):
    """R writes NA. It is missing, as an empty cell is."""
    edges, features = files
    messages = []
    for missing in ("", "NA"):
        features.write_text(f"id,colour\na,red\nb,{missing}\nc,blue\n")
        with pytest.raises(InputError) as caught:
            load_edge_list(edges, features, categorical="one_hot")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_baseline_reads_categories(files, tmp_path):
    edges, features = files
    words = ["--edges", str(edges), "--features", str(features), "--clusters", "2"]
    settings = ["model.kind=gae", "features.categorical=one_hot", "baseline.epochs=1"]
    assert main(["train", *words, *settings, f"output_dir={tmp_path / 'run'}", "--quiet"]) == 0

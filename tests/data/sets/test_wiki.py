"""Wiki: counts of the published files, and malformed lines."""

import gzip

import numpy as np
import pytest

from user_dgl.data import largest_component, load_wiki
from user_dgl.errors import InputError


def test_published_counts(data_folder):
    data = load_wiki(data_folder("wiki"))
    assert data.num_nodes == 2405
    assert data.graph.num_edges == 11596
    assert data.feat.shape == (2405, 4973)
    assert data.feat.dtype == np.float32
    assert data.feat.nnz == 1556595
    assert data.feat.data.min() == np.float32(0.808035)
    assert data.feat.data.max() == np.float32(1663.7)
    assert int((data.feat.getnnz(axis=1) == 0).sum()) == 88
    assert int((data.graph.degree == 0).sum()) == 42
    sizes = [92, 406, 203, 103, 10, 361, 157, 53, 109, 11, 269, 179, 9, 30, 77, 228, 108]
    assert np.bincount(data.labels).tolist() == sizes
    assert data.notes == (
        "1996 self-loop entries dropped",
        "627 repeated entries merged",
        "directed: made symmetric, 15358 entries give 11596 undirected edges",
    )
    assert largest_component(data).num_nodes == 2357


FILES = {
    "graph.txt": "0\t1\n1\t0\n2\t2\n0\t1\n2\t1\n",
    # Labels without 2; node 3 has neither edges nor words.
    "group.txt": "0\t3\n1\t10\n2\t1\n3\t3\n",
    "tfidf.txt": "0\t0\t1.5\n1\t4\t2\n2\t0\t0.25\n",
}


def write_set(folder, **changes):
    for name, text in {**FILES, **changes}.items():
        (folder / name).write_text(text)
    return folder


def test_made_up_set(tmp_path):
    data = load_wiki(write_set(tmp_path))
    assert data.num_nodes == 4
    assert list(zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
    ]
    expected = [[1.5, 0, 0, 0, 0], [0, 0, 0, 0, 2], [0.25, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(data.feat.toarray(), expected)
    assert data.labels.tolist() == [1, 2, 0, 1]
    assert data.notes[:2] == ("1 self-loop entries dropped", "1 repeated entries merged")


def test_gzipped_words(tmp_path):
    folder = write_set(tmp_path)
    plain = load_wiki(folder)
    (folder / "tfidf.txt").unlink()
    (folder / "tfidf.txt.gz").write_bytes(gzip.compress(FILES["tfidf.txt"].encode()))
    assert (load_wiki(folder).feat != plain.feat).nnz == 0
    (folder / "tfidf.txt.gz").write_bytes(gzip.compress(FILES["tfidf.txt"].encode())[:-9])
    with pytest.raises(InputError, match=r"tfidf\.txt\.gz: damaged gzip"):
        load_wiki(folder)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("graph.txt", "0\t1\n1\t0\n\nx\t1\n", r"graph\.txt:4: column 1: 'x' is not a whole number"),
        ("graph.txt", "0\t1\n1\t0\t5\n", r"graph\.txt:2: 3 columns, expected 2"),
        ("graph.txt", "0\t1\n1\t0.5\n", r"graph\.txt:2: column 2: '0\.5' is not a whole number"),
        ("graph.txt", "0\t1\n1\n", r"graph\.txt:2: 1 columns, expected 2"),
        ("graph.txt", "0\t1\n0\t4\n", r"graph\.txt:2: node 4: expected 0\.\.3"),
        ("graph.txt", "0\t1\n-1\t3\n", r"graph\.txt:2: node -1"),
        ("graph.txt", "0\t1\n0\t99999999999999999999\n", r"graph\.txt:2: column 2"),
        ("graph.txt", "", r"graph\.txt: no rows"),
        ("group.txt", "0\t3\n2\t3\n1\t3\n3\t1\n", r"group\.txt:2: node 2: expected 1"),
        ("group.txt", "0\t3\t1\n", r"group\.txt:1: 3 columns, expected 2"),
        ("tfidf.txt", "0\t0\t1\n0\t1\tmany\n", r"tfidf\.txt:2: column 3: 'many' is not a number"),
        ("tfidf.txt", "0\t0\t1\n0\t1\tnan\n", r"tfidf\.txt:2: value nan"),
        ("tfidf.txt", "0\t0\t1\n0\t1\t1\n0\t2\n", r"tfidf\.txt:3: 2 columns, expected 3"),
        ("tfidf.txt", "0\t0\t1\n0\t1\tinf\n", r"tfidf\.txt:2: value inf"),
        ("tfidf.txt", "0\t0\t1\n0\t2000000000\t1\n", r"tfidf\.txt:2: word 2000000000: expected 0"),
        ("tfidf.txt", "0\t0\t1\n4\t1\t1\n", r"tfidf\.txt:2: node 4"),
        ("tfidf.txt", "0\t0\t1\n1\t-1\t1\n", r"tfidf\.txt:2: word -1"),
        ("tfidf.txt", "0\t0\t1\n1\t0\t1\n0\t0\t2\n", r"tfidf\.txt:3: node 0, word 0 given twice"),
    ],
)
def test_malformed_lines_are_named(file, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_wiki(write_set(tmp_path, **{file: text}))


@pytest.mark.parametrize("file", FILES)
def test_missing_files(file, tmp_path):
    (write_set(tmp_path) / file).unlink()
    with pytest.raises(InputError, match=rf"{file}.*: No such file"):
        load_wiki(tmp_path)

"""tools/reproduction/input_digest.py: digests of what the cells read from files."""

import pandas as pd
import pytest
from reproduction import input_digest
from reproduction.input_digest import content_digests

from user_dgl.config import load_config

EDGES = "a,b\nb,c\nc,a\nc,d\n"


@pytest.fixture
def edges(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(EDGES)
    return file


def digest_of(edges, *settings, read="unread"):
    config = load_config(None, ["data.kind=edge_list", f"data.edges={edges}", *settings])
    return content_digests({"it": config}, edges.parent, read)["it"]


def test_files_are_read_once_and_remembered(edges, monkeypatch):
    assert digest_of(edges, read="nothing") is None
    digest = digest_of(edges)
    monkeypatch.setattr(input_digest, "_content", lambda config: pytest.fail("read again"))
    assert digest_of(edges) == digest_of(edges, read="nothing") == digest
    assert digest_of(edges, "data.noise.kind=random_flip", "train.lr=0.5") == digest


def test_a_reader_that_reads_the_same_leaves_the_digest(edges, monkeypatch):
    digest = digest_of(edges)
    monkeypatch.setattr(input_digest, "reader_digest", lambda config: "another")
    assert digest_of(edges, read="nothing") is None  # not known before the files are read again
    assert digest_of(edges) == digest
    assert len(pd.read_csv(edges.parent / input_digest.FILE)) == 1


@pytest.mark.parametrize("text", [EDGES.replace("c,d", "b,d"), EDGES + "d,e\n"])
def test_other_content_changes_the_digest(edges, text):
    digest = digest_of(edges)
    edges.write_text(text)
    assert digest_of(edges) == digest  # not read again
    assert digest_of(edges, read="all") != digest
    assert digest_of(edges) != digest


def test_features_labels_and_weights_count(edges):
    plain = digest_of(edges)
    (edges.parent / "labels.csv").write_text("a,1\nb,1\nc,2\nd,2\n")
    (edges.parent / "features.csv").write_text("a,.5\nb,1\nc,2\nd,.5\n")
    weighted = edges.with_name("weighted.csv")
    weighted.write_text("source,target,weight\na,b,2\nb,c,1\nc,a,1\nc,d,3\n")
    found = {
        digest_of(edges, f"data.labels={edges.parent / 'labels.csv'}"),
        digest_of(edges, f"data.features={edges.parent / 'features.csv'}"),
        digest_of(weighted),
        digest_of(weighted, "data.weights=ignore"),
    }
    # Without its weights, the weighted graph is the plain one.
    assert len(found) == 4
    assert plain in found


def test_files_that_are_not_here_and_synthetic_graphs_have_none(tmp_path):
    assert digest_of(tmp_path / "missing.csv") is None
    config = load_config(None, ["data.kind=synthetic"])
    assert content_digests({"it": config}, tmp_path, read="unread") == {"it": None}
    assert not (tmp_path / input_digest.FILE).exists()

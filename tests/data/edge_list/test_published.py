"""Published edge lists, by their known counts."""

import pytest

from user_dgl.data import load_edge_list


@pytest.mark.parametrize(
    ("edges", "labels", "nodes", "num_edges", "isolated"),
    [
        ("snap/ca-AstroPh.txt.gz", None, 18772, 198050, 1),
        ("snap/email-Enron.txt.gz", None, 36692, 183831, 0),
        (
            "snap/email-Eu-core.txt.gz",
            "snap/email-Eu-core-department-labels.txt",
            1005,
            16064,
            19,
        ),
        ("snap/com-dblp.csv.gz", None, 317080, 1049866, 0),
        ("linqs_cora/cora.cites", None, 2708, 5278, 0),
        ("lfr/LFR_N100000_ad5_mc50_mu0.1.csv.gz", None, 100000, 211185, 57),
        ("musae/facebook/facebook_edges.csv", None, 22470, 170823, 0),
        (
            "musae/lastfm_asia/lastfm_asia_edges.csv",
            "musae/lastfm_asia/lastfm_asia_target.csv",
            7624,
            27806,
            0,
        ),
        ("livejournal_sub/network_v1_subgraph_speed_up.dat.gz", None, 84438, 1521988, 0),
    ],
)
def test_published_edge_lists(edges, labels, nodes, num_edges, isolated, data_root):
    if not (data_root / edges).exists():
        pytest.skip(f"{edges} is missing")
    data = load_edge_list(data_root / edges, None, labels and data_root / labels)
    assert (data.num_nodes, data.graph.num_edges) == (nodes, num_edges)
    assert int((data.graph.degree == 0).sum()) == isolated
    if labels:
        assert data.labels.max() + 1 == (42 if nodes == 1005 else 18)
    ids = [int(i) for i in data.node_ids or range(nodes)]
    assert ids == sorted(ids)

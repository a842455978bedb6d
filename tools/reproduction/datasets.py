"""Data sections and numbers of clusters of the data sets in the tables."""

# Data section and number of clusters of each set; paths as in the data folder.
DATASETS = {
    "cora": ({"kind": "planetoid", "path": "planetoid", "name": "cora"}, 7),
    "citeseer": ({"kind": "planetoid", "path": "planetoid", "name": "citeseer"}, 6),
    "wiki": ({"kind": "wiki", "path": "wiki"}, 17),
    "pubmed": ({"kind": "planetoid", "path": "planetoid", "name": "pubmed"}, 3),
    "acm": ({"kind": "npz", "path": "graphdata_npz/acm.npz"}, 3),
    "dblp": ({"kind": "npz", "path": "graphdata_npz/dblp.npz"}, 4),
    "amazon_photo": ({"kind": "npz", "path": "graphdata_npz/amazon_photo.npz"}, 8),
    "coauthor_cs": ({"kind": "npz", "path": "graphdata_npz/coauthor_cs.npz"}, 15),
    "uai2010": ({"kind": "npz", "path": "graphdata_npz/uai.npz"}, 19),
    "cora_ml": ({"kind": "npz", "path": "prognn_meta/cora_ml.npz"}, 7),
    "facebook": ({"kind": "musae", "path": "musae/facebook"}, 4),
    "twitch_de": ({"kind": "musae", "path": "musae/twitch_DE"}, 2),
    "amazon_computers": ({"kind": "npz", "path": "graphdata_npz/amazon_cs.npz"}, 10),
    "coauthor_physics": ({"kind": "npz", "path": "graphdata_npz/coauthor_phy.npz"}, 5),
}
# Graphs without features.
_LFR_CLUSTERS = {1_000: 11, 5_000: 62, 10_000: 120, 50_000: 426}
LFR = {
    f"lfr_{size}_{mixing}": (
        {
            "kind": "edge_list",
            "edges": f"lfr/LFR_N{size}_ad5_mc50_mu{mixing}.csv.gz",
            # `runs.with_readable_labels` makes rows of these communities.
            "labels": f"lfr/LFR_N{size}_ad5_mc50_mu{mixing}.json.gz",
        },
        num_clusters,
    )
    for size, num_clusters in _LFR_CLUSTERS.items()
    for mixing in (0.1, 0.3, 0.5, 0.7)
}
FEATURELESS = {
    "lastfm_asia": ({"kind": "musae", "path": "musae/lastfm_asia"}, 18),
    "email_eu_core": (
        {
            "kind": "edge_list",
            "edges": "snap/email-Eu-core.txt.gz",
            "labels": "snap/email-Eu-core-department-labels.txt",
        },
        42,
    ),
    # All nodes, 266 of them without an edge, and the largest component.
    "polblogs": ({"kind": "npz", "path": "prognn_meta/polblogs.npz"}, 2),
    "polblogs_largest": (
        {"kind": "npz", "path": "prognn_meta/polblogs.npz", "largest_component": True},
        2,
    ),
    **LFR,
}
# The attacked graphs have the nodes of the largest component; PubMed's has all nodes, in the order
# of Planetoid.
_LARGEST = {"kind": "npz", "largest_component": True}
ATTACKED = {
    "cora": ({**_LARGEST, "path": "prognn_meta/cora.npz"}, 7),
    "citeseer": ({**_LARGEST, "path": "prognn_meta/citeseer.npz"}, 6),
    "cora_ml": ({**_LARGEST, "path": "prognn_meta/cora_ml.npz"}, 7),
    # It has no features: the neighbours of a node serve as its features.
    "polblogs": ({**_LARGEST, "path": "prognn_meta/polblogs.npz"}, 2),
    "pubmed": DATASETS["pubmed"],
}


def attacked(dataset: str, rate: int) -> tuple[dict, int]:
    """Return data section and number of clusters of an attacked graph that is published."""
    data, num_clusters = ATTACKED[dataset]
    file = f"prognn_meta/{dataset}_meta_adj_{rate / 100:g}.npz"
    return {**data, "noise": {"kind": "file", "file": file}}, num_clusters

#!/usr/bin/env python3
"""How the default does on real values, such as embeddings and tables, beside the floors.

``python tools/study_embeddings.py [--sets NAME ...] [--seeds 0-9] [--results FOLDER]``

The words of citation graphs are replaced by real values of six kinds, which are the same for all
seeds:

- components: the 128 leading components of their tf-idf;
- embedding: these, rotated, with a large mean in common and one column that is large in all rows,
  scaled to norm 1, as language models give them;
- mean of word vectors: the mean over the words of a text of vectors with 100 columns, half of which
  are the leading components of the words and half of which is noise;
- shares of topics: of 40 topics found by non-negative matrix factorisation of the tf-idf;
- amounts: 60 columns in units between 1 and 10,000, of which each second one is log-normal, made
  from random directions of the components;
- standardised words: each word's column less its mean, divided by its standard deviation.

The set ``tables`` has block models of 2,000 nodes with a table of few columns, another for each
seed, see `TABLES`.

``configs/default.yaml`` runs on each graph as it is, and with 50 % of random edges added. The
script writes FOLDER/embeddings.csv and .md. Labels are read by the metrics only.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from reproduction import study
from reproduction.files import write_text
from reproduction.plan import DATASETS
from reproduction.summary import (
    ENOUGH,
    LEGEND,
    PAIRED_LEGEND,
    markdown,
    mean_std,
    paired,
    with_foot,
)
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize

from user_dgl.config import default_config, load_config
from user_dgl.data import AttributedGraph, load_data
from user_dgl.data.formats.npz import write_npz
from user_dgl.graph import Graph
from user_dgl.pipeline.train import train

RESULTS = Path(__file__).with_name("results")
SETS = ("cora", "citeseer", "acm", "cora_ml", "dblp")
RATES = (0, 50)
# The block models, and the shares of their clusters.
NODES, BLOCKS = 2_000, 6
EQUAL, UNEQUAL = (1 / BLOCKS,) * BLOCKS, (0.85, 0.05, 0.04, 0.03, 0.02, 0.01)
Columns = Callable[[np.ndarray, np.random.Generator], np.ndarray]
COMPONENTS, WORD_COLUMNS, TOPICS, AMOUNTS = 128, 50, 40, 60
FLOORS = {"floors": "", "floors_prepared": "prepared_"}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [*SETS, "tables"]
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=every, default=every)
    parser.add_argument("--seeds", default="0-9", metavar="0-9", help="first and last seed")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    study.add_option(parser)
    arguments = parser.parse_args(argv)
    low, _, high = arguments.seeds.partition("-")
    known = study.known_rows(arguments.results, "embeddings", arguments.stale)
    for name in arguments.sets:
        for kind, graph_of in graphs(name):
            for rate in RATES:
                for seed in range(int(low), int(high or low) + 1):
                    if (name, kind, rate, seed) in known:
                        continue
                    key = {"set": name, "features": kind, "rate": rate, "seed": seed}
                    row = key | scores(graph_of(seed), rate, seed)
                    study.add_rows(arguments.results, "embeddings", [row])
                print(name, kind, rate, flush=True)
    page = report(study.rows_of(arguments.results, "embeddings"))
    write_text(arguments.results / "embeddings.md", page)
    return 0


def graphs(name: str) -> Iterator[tuple[str, Callable[[int], AttributedGraph]]]:
    """Kinds of features of a set, and the function that makes the graph of a seed."""
    if name == "tables":
        for kind, (columns, shares) in TABLES.items():
            yield kind, partial(table, columns, shares)
        return
    for kind in KINDS:
        embedded = real_valued(name, kind)
        yield kind, lambda seed, embedded=embedded: embedded


def real_valued(name: str, kind: str) -> AttributedGraph:
    """Citation graph with real values of a kind in place of its words."""
    data = _words_of(name)
    values = sp.csr_matrix(KINDS[kind](data.feat).astype(np.float32))
    return AttributedGraph(data.graph, values, data.labels)


@cache
def _words_of(name: str) -> AttributedGraph:
    settings = [f"data.{key}={value}" for key, value in DATASETS[name][0].items()]
    return load_data(load_config(default_config(), [*settings, "model.num_clusters=2"]).data)


def components(words: sp.csr_matrix) -> np.ndarray:
    """The leading components (N, 128) of the tf-idf of words (N, F)."""
    tfidf = TfidfTransformer().fit_transform(abs(words))
    return TruncatedSVD(COMPONENTS, random_state=0).fit_transform(tfidf)


def embedding(words: sp.csr_matrix) -> np.ndarray:
    """`components` with the geometry of a language model's embeddings: rows of norm 1."""
    rng = np.random.default_rng(0)
    values = components(words)
    rotation = np.linalg.qr(rng.standard_normal((COMPONENTS, COMPONENTS)))[0]
    values = values / values.std() @ rotation + 2 * rng.standard_normal(COMPONENTS)
    values[:, 3] += 20
    return normalize(values)


def mean_of_word_vectors(words: sp.csr_matrix) -> np.ndarray:
    """Means (N, 100) over the words of each row; the word vectors are half noise."""
    rng = np.random.default_rng(0)
    tfidf = TfidfTransformer().fit_transform(abs(words))
    of_words = TruncatedSVD(WORD_COLUMNS, random_state=0).fit(tfidf).components_.T
    noise = rng.standard_normal((2, *of_words.shape))
    vectors = np.hstack([noise[0] + of_words / of_words.std(), noise[1]])
    in_common = 0.3 * rng.standard_normal(2 * WORD_COLUMNS)
    return normalize(sp.csr_matrix(words != 0, dtype=float), norm="l1") @ vectors + in_common


def shares_of_topics(words: sp.csr_matrix) -> np.ndarray:
    """Shares (N, 40) of topics in each row, with sum 1; none is 0."""
    tfidf = TfidfTransformer().fit_transform(abs(words))
    shares = NMF(TOPICS, random_state=0, max_iter=100).fit_transform(tfidf) + 1e-4
    return normalize(shares, norm="l1")


def amounts(words: sp.csr_matrix) -> np.ndarray:
    """Columns (N, 60) as of a table of customers: half with long tails, in different units."""
    rng = np.random.default_rng(1)
    values = components(words)
    directions = rng.standard_normal((COMPONENTS, AMOUNTS)) / np.sqrt(COMPONENTS)
    table = values / values.std() @ directions
    table[:, ::2] = np.exp(2 * table[:, ::2])
    return table * 10 ** rng.uniform(0, 4, AMOUNTS)


def standardised_words(words: sp.csr_matrix) -> np.ndarray:
    """Each column (N,) of the words less its mean, with standard deviation 1."""
    return StandardScaler().fit_transform(words.toarray().astype(np.float64))


def around(means: np.ndarray) -> Columns:
    """Columns with standard deviation 1 around the mean of each cluster, the rows of a matrix."""
    return lambda clusters, rng: means[clusters] + rng.normal(size=(len(clusters), means.shape[1]))


def drawn(columns: int, scale: float) -> Columns:
    """Columns around means that are drawn from a normal distribution of this scale."""
    return lambda clusters, rng: around(scale * rng.normal(size=(BLOCKS, columns)))(clusters, rng)


def flags_and_columns(clusters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two flags and two columns."""
    values = drawn(4, 1.2)(clusters, rng)
    values[:, :2] = values[:, :2] > 0
    return values


def ratings(clusters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Three ratings from 1 to 5."""
    return np.clip(np.rint(drawn(3, 1.2)(clusters, rng)) + 3, 1, 5)


def table(columns: Columns, shares: Sequence[float], seed: int) -> AttributedGraph:
    """A block model with columns: five edges a node within its cluster, and three at random."""
    rng = np.random.default_rng(seed)
    clusters = rng.choice(len(shares), NODES, p=shares)
    ends = [rng.integers(0, NODES, (2, 3 * NODES))]
    for cluster in range(len(shares)):
        nodes = np.flatnonzero(clusters == cluster)
        ends.append(rng.choice(nodes, (2, 5 * len(nodes))))
    graph, _ = Graph.from_edges(NODES, *np.concatenate(ends, axis=1))
    values = columns(clusters, rng).astype(np.float32)
    return AttributedGraph(graph, sp.csr_matrix(values), clusters)


TABLES: dict[str, tuple[Columns, Sequence[float]]] = {
    "1 column": (drawn(1, 2.0), EQUAL),
    "2 columns": (drawn(2, 2.0), EQUAL),
    "4 columns": (drawn(4, 1.0), EQUAL),
    "16 columns": (drawn(16, 0.6), EQUAL),
    "16 columns, a cluster of 85 %": (drawn(16, 0.7), UNEQUAL),
    "8 columns, clusters on a line": (
        around(2 / 3 * np.arange(BLOCKS)[:, None] * np.ones(8)),
        EQUAL,
    ),
    "2 flags, 2 columns": (flags_and_columns, EQUAL),
    "3 ratings": (ratings, EQUAL),
}
KINDS: dict[str, Callable[[sp.csr_matrix], np.ndarray]] = {
    "components": components,
    "embedding": embedding,
    "mean of word vectors": mean_of_word_vectors,
    "shares of topics": shares_of_topics,
    "amounts": amounts,
    "standardised words": standardised_words,
}


def scores(data: AttributedGraph, rate: int, seed: int) -> dict[str, float]:
    """NMI in percent of the default and of the four floors."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.npz"
        with open(file, "wb") as out:
            write_npz(out, data)
        noise = [f"data.noise={{kind: random_flip, rate: {rate / 100}}}"] if rate else []
        settings = [
            "data.kind=npz",
            f"data.path={file}",
            *noise,
            f"model.num_clusters={data.labels.max() + 1}",
            f"seed={seed}",
            "eval.floors=true",
        ]
        config = load_config(default_config(), settings)
        result = train(config, Path(folder) / "run", lambda line: None)
    found = {"default": result["metrics"]["nmi"]}
    for section, prefix in FLOORS.items():
        found |= {prefix + name: of_floor["nmi"] for name, of_floor in result[section].items()}
    return found


def report(rows: pd.DataFrame) -> str:
    """Return the Markdown page."""
    floors = [name for name in rows if name.endswith("_kmeans")]
    lines = ["# embeddings", "", "Made by `python tools/study_embeddings.py`.", ""]
    lines += [LEGEND + " " + PAIRED_LEGEND, ""]
    lines += [
        "Words replaced by real values, and tables of few columns; 50: half as many random edges "
        "added. The best floor is the "
        "one of the highest mean among features and smoothed features, raw and prepared, with "
        "k-means.",
        "",
    ]
    body = []
    groups = rows.groupby(["set", "features", "rate"], sort=False)
    for (name, kind, rate), of in groups:
        seeds = of["seed"].nunique()
        best = of[floors].mean().idxmax()
        ours, its = (mean_std(of[column], seeds, ENOUGH) for column in ("default", best))
        difference = paired(of["default"] - of[best], seeds, ENOUGH)
        body.append([name, kind, str(rate), ours, best, its, difference])
    heads = ["graph", "features", "% flips", "`configs/default.yaml`", "best floor", "its NMI"]
    lines += markdown([*heads, "difference"], body)
    return "\n".join(with_foot(lines)).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""The task ``link_prediction``: scores of pairs of nodes by a trained run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from user_dgl.config import Config
from user_dgl.data.edge_list.edges import read_pairs
from user_dgl.errors import InputError
from user_dgl.evaluation.ranking_metrics import link_metrics
from user_dgl.features.cosine import row_dots
from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.ops import resolve_engine
from user_dgl.graph.pairs import LabelledPairs
from user_dgl.links.files import read_link_arrays, read_links
from user_dgl.links.score import LinkScore, RunTerms, new_links
from user_dgl.output.run_directory import RunDirectory
from user_dgl.structure.link_critic import Examples
from user_dgl.structure.pair_terms import PairTerms
from user_dgl.training.result import TrainingResult


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Scores pairs of nodes by a finished run.

    Attributes
    ----------
    score : LinkScore
    terms : RunTerms
    embedding : float32 (N, d)
    feat : scipy CSR (N, F) or None
        The features that the terms are made of. None: they are made of the edges.
    probs : float32 (N, K) or None
        Y, if it is a term of the score.
    """

    score: LinkScore
    terms: RunTerms
    embedding: np.ndarray
    feat: sp.csr_matrix | None
    probs: np.ndarray | None

    def __call__(self, pairs: np.ndarray, score: str) -> np.ndarray:
        """Return scores (M,) of pairs (2, M); ``score`` is a value of ``links.score``."""
        if score == "dot":
            return row_dots(self.embedding, *pairs)
        return self.score(self.terms, pairs)

    def report(self, held_out: Mapping[str, LabelledPairs], chosen: str) -> dict[str, Any]:
        """Return ``metrics`` of the chosen score on ``test``, and ``links`` with all metrics."""
        metrics = {
            name: {
                score: link_metrics(self(part.pairs, score), part.is_edge)
                for score in ("learned", "dot")
            }
            for name, part in held_out.items()
        }
        counts = {f"num_{name}_edges": int(part.is_edge.sum()) for name, part in held_out.items()}
        return {
            "metrics": metrics["test"][chosen],
            "links": {"score": chosen, **counts, **metrics},
        }


def draw_examples(config: Config, graph: Graph, held_out: np.ndarray) -> Examples:
    """Draw the examples that the score is learned from.

    Raises
    ------
    InputError
        The graph is too small.
    """
    folds = config.structure.critic.folds
    examples = Examples.draw(graph, folds, config.seed, held_out)
    if examples is None and graph.num_edges == graph.num_nodes * (graph.num_nodes - 1) // 2:
        raise InputError(
            "task=link_prediction: every pair of nodes is an edge, so that there is nothing to "
            "learn"
        )
    if examples is None:
        raise InputError(
            f"task=link_prediction: {graph.num_nodes} nodes and {graph.num_edges} training edges "
            f"are too few to learn from in structure.critic.folds={folds} folds"
        )
    return examples


def learn_links(
    config: Config,
    examples: Examples,
    result: TrainingResult,
    feat: sp.csr_matrix | None,
    memberships: Callable[[torch.Tensor], np.ndarray] | None,
) -> LinkModel:
    """Learn the score of pairs from the edges that a model was trained on.

    Parameters
    ----------
    config : Config
    examples : Examples
    result : TrainingResult
    feat : scipy CSR (N, F) or None
        Features of `PairTerms`. Without features the score has no term of the clustering either,
        because the encoder has read features that were made of all edges.
    memberships : callable or None
        Returns Y for other weights of A', see `user_dgl.training.trainer.Trainer.memberships`.
    """
    if feat is None:
        memberships = None
    terms = _terms(config, result.graph, result.weight, result.observed, feat, memberships)
    score = LinkScore.fit(terms, examples, config.links.rising)
    # From here on Y is fixed, because pairs that are not edges have no influence on it.
    probs = None if memberships is None else result.probs
    embedding = result.embedding.astype(np.float32, copy=False)
    return LinkModel(score, _with_probs(terms, probs), embedding, feat, probs)


def read_link_model(run: RunDirectory) -> LinkModel:
    """Read the model of a finished run of this task.

    Raises
    ------
    InputError
        The run is of another task or not finished, or its files are damaged.
    """
    config = run.read_config()
    if config.task != "link_prediction":
        raise InputError(
            f"{run.path}: a run of task {config.task} scores no pairs: train with "
            "task=link_prediction"
        )
    if not run.finished():
        raise InputError(f"{run.path}: the run is not finished: go on with train.resume=true")
    observed_graph, _, _ = run.read_input()
    graph, weight = run.read_learned_pairs()
    observed = observed_graph.positions(graph.keys) >= 0
    score, feat, probs = read_link_arrays(run)
    embedding = run.read_embedding()
    run.check_sizes(
        nodes=observed_graph.num_nodes,
        embeddings=len(embedding),
        **{"rows of A'": graph.num_nodes},
        **({} if feat is None else {"rows of features": feat.shape[0]}),
    )
    terms = _terms(config, graph, weight, observed, feat, None)
    return LinkModel(score, _with_probs(terms, probs), embedding, feat, probs)


def predict_pairs(run_dir: Path, pairs_file: Path) -> pd.DataFrame:
    """Score the pairs in a file.

    Parameters
    ----------
    run_dir : Path
    pairs_file : Path
        See `user_dgl.data.edge_list.edges.read_pairs`.

    Returns
    -------
    DataFrame
        Columns ``source`` and ``target`` (the user's ids, in the order of the rows), ``score`` as
        ``links.score`` says, and ``is_edge``: 1 for an edge that the run was trained on.

    Raises
    ------
    InputError
    """
    run = RunDirectory(run_dir)
    model = read_link_model(run)
    ids = _ids(run, model)
    pairs = read_pairs(pairs_file, ids.tolist())
    observed = model.terms.observed
    place = observed.graph.positions(pair_keys(len(ids), *pairs))
    is_edge = (place >= 0) & (observed.weight.numpy()[place] > 0)
    score = model(pairs, run.read_config().links.score)
    columns = {"source": ids[pairs[0]], "target": ids[pairs[1]], "score": score}
    return pd.DataFrame(columns | {"is_edge": is_edge.astype(int)})


def predict_new_links(run_dir: Path, count: int) -> tuple[pd.DataFrame, int]:
    """Predict the most likely new links of every node.

    Parameters
    ----------
    run_dir : Path
    count : int
        Number of links for each node.

    Returns
    -------
    DataFrame
        Columns ``source`` and ``target`` (the user's ids) and ``score`` as ``links.score`` says.
        Rows are sorted by source in the order of ``clusters.csv``, and then by falling score; see
        `user_dgl.links.score.new_links`. Edges that the run was trained on are not new, and neither
        are edges that it held out.
    int
        Number of nodes without new links.

    Raises
    ------
    InputError
    """
    run = RunDirectory(run_dir)
    model = read_link_model(run)
    ids = _ids(run, model)
    graph, _, _ = run.read_input()
    held_out = [part.pairs[:, part.is_edge] for part in (read_links(run) or {}).values()]
    keys = [pair_keys(len(ids), *pairs) for pairs in held_out]
    known = Graph.from_keys(len(ids), np.unique(np.concatenate([graph.keys, *keys])))
    score, points = run.read_config().links.score, model.terms.learned.smoothed()
    node, other, values = new_links(lambda pairs: model(pairs, score), points, known, count)
    table = pd.DataFrame({"source": ids[node], "target": ids[other], "score": values})
    return table, len(ids) - len(np.unique(node))


def _ids(run: RunDirectory, model: LinkModel) -> np.ndarray:
    """Read the user's ids of the nodes."""
    ids = np.array(run.read_clusters()[0], dtype=object)
    run.check_sizes(clusters=len(ids), nodes=len(model.embedding))
    return ids


def _terms(
    config: Config,
    graph: Graph,
    weight: np.ndarray,
    observed: np.ndarray,
    feat: sp.csr_matrix | None,
    memberships: Callable[[torch.Tensor], np.ndarray] | None,
) -> RunTerms:
    """Make the terms on A and on A'.

    Parameters
    ----------
    graph : Graph
        Pairs of A'.
    weight : (P,)
        Weights of the pairs in A'.
    observed : bool (P,)
        Which pairs are observed edges.
    """
    ones = torch.from_numpy(observed.astype(np.float32))
    engine = resolve_engine(config.structure.engine)
    on_observed = PairTerms(graph, ones, feat, config.structure.critic, config.seed, engine)
    # float32 as in the files of a run, whatever the precision of the training.
    learned = torch.from_numpy(weight.astype(np.float32, copy=False))
    return RunTerms(on_observed, on_observed.on(learned, memberships))


def _with_probs(terms: RunTerms, probs: np.ndarray | None) -> RunTerms:
    """Return the terms with Y (N, K) for all weights, or without Y if it is None."""
    fixed = None if probs is None else lambda weight: probs
    return RunTerms(terms.observed, terms.learned.on(terms.learned.weight, fixed))

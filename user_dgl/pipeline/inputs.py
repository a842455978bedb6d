"""Inputs of a run: data, noise, held-out pairs and prepared features."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import scipy.sparse as sp

from user_dgl.baselines import BASELINES, resolve_baseline
from user_dgl.clustering.num_clusters import asks_edges
from user_dgl.config import Config
from user_dgl.config.data import NOISE_KINDS
from user_dgl.config.paths import user_path
from user_dgl.data import AttributedGraph, data_root, load_data
from user_dgl.errors import InputError
from user_dgl.features.columns import rows_differ
from user_dgl.features.preparation import FeaturePreparation
from user_dgl.graph import Graph
from user_dgl.graph.weight_power import effective_share, even_power, with_power
from user_dgl.links.split import LinkSplit, split_links
from user_dgl.perturb import Perturbed, Victim, perturb


def load_noisy_data(
    config: Config, log: Callable[[str], None]
) -> tuple[AttributedGraph, Perturbed, LinkSplit | None]:
    """Load the data set, add the noise that the settings ask for, and hold out pairs.

    For link prediction, the clean and the noisy graph both lack the held-out edges. Notes on what
    reading has cleaned go to ``log``, a line each.
    """
    data, split, held_out = load_data(config.data, config.features.categorical), None, None
    if config.task == "link_prediction":
        split = split_links(data.graph, config.links, config.seed)
        data, held_out = dataclasses.replace(data, graph=split.training), split.held_out_keys
    noise, root, victim = config.data.noise, data_root(config.data), None
    if NOISE_KINDS[noise.kind].reads_labels:
        victim = Victim(data.feat, data.labels)
    noisy = perturb(data.graph, noise, config.seed, root, held_out, victim, log)
    for note in (*data.notes, *noisy.notes):
        log(f"Note: {note}")
    return data, noisy, split


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a run.

    Attributes
    ----------
    asked : Config
        The settings as given.
    config : Config
        The settings adapted to the data, with the number of clusters once it is known.
    data : AttributedGraph
    noisy : Perturbed
    raw_feat, feat : scipy CSR (N, F) or None
        Raw and prepared features. They are None if only parts of the graph are in memory.
    num_features : int
        Columns of the raw features.
    warnings : list of str
    split : LinkSplit or None
        For link prediction, the held-out pairs, which ``data`` and ``noisy`` do not contain.
    """

    asked: Config
    config: Config
    data: AttributedGraph
    noisy: Perturbed
    raw_feat: sp.csr_matrix | None
    feat: sp.csr_matrix | None
    num_features: int
    warnings: list[str]
    split: LinkSplit | None = None

    def resolved(self, output_dir: Path) -> Config:
        """Return settings that repeat the run from any working directory."""
        root = str(data_root(self.asked.data).resolve())
        data = dataclasses.replace(self.asked.data, root=root)
        folder, distributed = os.path.abspath(output_dir), self.asked.distributed
        if distributed.partition is not None:
            parts = user_path(distributed.partition, "distributed.partition").resolve()
            distributed = dataclasses.replace(distributed, partition=str(parts))
        return dataclasses.replace(
            self.asked, output_dir=folder, data=data, distributed=distributed
        )

    def summary(self, engine: str, output_dir: Path) -> str:
        """Describe in one line what is trained."""
        return (
            f"{self.data.num_nodes} nodes, {self.noisy.graph.num_edges} edges, "
            f"{self.num_features} features, engine {engine}; writing to {output_dir}"
        )


def read_inputs(config: Config, log: Callable[[str], None]) -> Inputs:
    """Load the data, add noise, and prepare the features.

    Raises
    ------
    InputError
    """
    config, warnings = resolve_baseline(config)
    data, noisy, split = load_noisy_data(config, log)
    asked = config
    prepared = prepared_features(config, noisy.graph, data.feat)
    noisy = dataclasses.replace(noisy, graph=prepared.graph)
    warnings += prepared.warnings
    method = BASELINES.get(config.model.kind)
    if method and not method.reads_weights and noisy.graph.weight is not None:
        warnings.append(f"{config.model.kind} takes all edges alike: weights have no effect")
    for warning in warnings:
        log(f"Warning: {warning}")
    columns = 0 if data.feat is None else data.feat.shape[1]
    if prepared.from_edges:
        data = dataclasses.replace(data, feat=None)
    config, raw_feat, feat = prepared.config, prepared.raw_feat, prepared.feat
    return Inputs(asked, config, data, noisy, raw_feat, feat, columns, warnings, split)


@dataclass(frozen=True, eq=False)
class PreparedFeatures:
    """Graph and features to train on, and settings that suit them.

    Attributes
    ----------
    config : Config
    graph : Graph
        Its weights are those of the data to ``weight_power``, divided by their mean.
    weight_power : float
    raw_feat, feat : scipy CSR (N, F)
        Raw and prepared features. A table of few columns has one more when it is prepared.
    preparation : FeaturePreparation
        Prepares features of other nodes in the same way.
    from_edges : bool
        Whether the features are the rows of the adjacency, as there are none of use.
    warnings : list of str
    """

    config: Config
    graph: Graph
    weight_power: float
    raw_feat: sp.csr_matrix
    feat: sp.csr_matrix
    preparation: FeaturePreparation
    from_edges: bool
    warnings: list[str]


def prepared_features(config: Config, graph: Graph, feat: sp.csr_matrix | None) -> PreparedFeatures:
    """Prepare the features, and take the edges alone if the features do not differ between nodes.

    Beside features the weights of the edges are evened out, see `user_dgl.graph.weight_power`.

    Raises
    ------
    InputError
        Nothing tells the nodes apart.
    """
    warnings: list[str] = []
    preparation = FeaturePreparation(config.features)
    asked = config.data.weight_power
    power = 1.0 if asked is None or graph.weight is None else asked
    graph = with_power(graph, power)
    if feat is not None:
        prepared = preparation.fit_transform(feat)
        # Features without columns are refused by training, with a message of their own.
        if not feat.shape[1] or rows_differ(prepared):
            said = preparation.warnings
            if asked is None:
                power, uneven = _power_of_weights(config, graph)
                graph, said = with_power(graph, power), [*said, *uneven]
            config, raw, warnings = with_features(config, graph, feat, prepared.shape[1])
            said = [*said, *warnings]
            return PreparedFeatures(config, graph, power, raw, prepared, preparation, False, said)
        because = "beyond rounding in float32"
        if rows_differ(feat.tocsr()):
            because = (
                f"once they are prepared (features.weighting={config.features.weighting}, "
                f"features.row_norm={config.features.row_norm}; a single column needs "
                "features.weighting=auto or robust, and features.row_norm=l2)"
            )
        warnings = [f"the features do not differ between the nodes {because}: they are not used"]
        if not graph.num_edges:
            raise InputError(
                f"{warnings[0]}, and there are no edges: nothing tells the nodes apart"
            )
    config, raw, more = with_features(config, graph, None)
    prepared = preparation.fit_transform(raw)
    said = [*warnings, *more]
    return PreparedFeatures(config, graph, power, raw, prepared, preparation, True, said)


def with_features(
    config: Config, graph: Graph, feat: sp.csr_matrix | None, num_prepared: int | None = None
) -> tuple[Config, sp.csr_matrix, list[str]]:
    """Return settings that suit the data, the features to train on, and warnings.

    If there are no features, the rows of the adjacency serve as features, so that the features of a
    node are its neighbours. ``num_prepared`` is the number of columns of the prepared features, if
    it is not that of ``feat``.

    Raises
    ------
    InputError
        There are neither edges nor features.
    """
    warnings = []
    if feat is None:
        if not graph.num_edges:
            raise InputError(
                "the data have neither edges nor features, so that nothing tells the nodes apart: "
                "give data.features (--features FILE) or a graph with edges"
            )
        feat = graph.to_scipy()
        # Such features contain the edges that the critic holds out for validation.
        config = without_judging(config)
        warnings.append(
            "the data have no features: the encoder smooth uses the edges alone, other encoders "
            "get the neighbours of a node as its features, and no critic judges the edges"
        )
    columns, model = num_prepared or feat.shape[1], config.model
    if model.num_clusters == "auto" and asks_edges(model, graph.num_nodes, columns):
        number = min(feat.shape[1], model.smooth.num_components)
        few = f"model.num_clusters=auto: features of {number} columns tell few clusters apart"
        warnings.append(
            f"{few}, so that the edges are asked too"
            if graph.num_edges
            else f"{few}, and there are no edges to ask"
        )
    alone = (feat.getnnz(axis=1) == 0) & (graph.degree.numpy() == 0)
    if alone.any():
        warnings.append(
            f"{alone.sum()} nodes have neither edges nor features: their clusters mean nothing"
        )
    return config, feat, warnings


def without_judging(config: Config) -> Config:
    """Return the settings for features made of edges, which no stage may compare with edges."""
    structure = dataclasses.replace(config.structure, prior="uniform")
    smooth = config.model.smooth
    if smooth.source == "auto":
        smooth = dataclasses.replace(smooth, source="graph")
    model = dataclasses.replace(config.model, smooth=smooth)
    return dataclasses.replace(config, structure=structure, model=model)


def _power_of_weights(config: Config, graph: Graph) -> tuple[float, list[str]]:
    """Find the power to which weights beside features are raised, and a warning that says so."""
    power = 1.0 if config.model.by_edges or config.model.kind != "user" else even_power(graph)
    if graph.weight is None or power == 1:
        return 1.0, []
    share = 100 * effective_share(graph.weight)
    done = f"they are raised to the power {power:g}" if power else "the edges count alike"
    return power, [
        f"a few edges have most of the weight: all {graph.num_edges} say as much as {share:.2g} % "
        f"of them with equal weights, so {done} (data.weight_power=1 takes the weights as they are)"
    ]

"""The cells of every table: data sets, methods, noise, seeds. Change the experiments here.

Rates are in percent.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from reproduction import paper
from reproduction.cells import Cell
from reproduction.datasets import ATTACKED, DATASETS, FEATURELESS, LFR, attacked
from reproduction.deeprobust_models import MODELS
from reproduction.defence import CLEANED, NETWORKS
from reproduction.pyagc_models import MODELS as PYAGC
from reproduction.rivals import RIVALS

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

# Data sets that take only this number of seeds.
FEW_SEEDS = {"pubmed": 3}

# Config of each method, below configs/. A method has cells only on the data sets of METHODS_OF.
# USER-DGL is the default with settings for one data set, where these are better.
# Methods of OPTIONAL run only when --methods names them.
METHODS = {
    "USER-DGL": "{dataset}.yaml",
    "user": "user/{dataset}.yaml",
    "default": "default.yaml",
    "paper": "paper/{dataset}.yaml",
}
# Configs that replace those of METHODS for one table and data set.
OTHER_CONFIGS = {("meta-attack", "citeseer", "USER-DGL"): "attacked/citeseer.yaml"}
METHODS_OF = {
    "cora": ["user", "default", "paper"],
    "citeseer": ["USER-DGL", "user", "default", "paper"],
    "wiki": ["user", "default", "paper"],
    "pubmed": ["default"],
    "cora_ml": ["default"],
    "polblogs": ["default"],
}

FLIP_RATES = (0, 10, 20, 30, 40, 50)
ATTACK_RATES = (5, 10, 15, 20, 25)
SEEDS = range(10)

# The table of the default config: graphs with features, clean and with flips; attacked graphs at
# the highest rate that is published; graphs without features, clean.
DEFAULT = (
    "cora", "citeseer", "wiki", "acm", "dblp", "amazon_photo", "coauthor_cs", "uai2010", "cora_ml",
    "pubmed", "amazon_computers", "coauthor_physics", "facebook", "twitch_de",
)  # fmt: skip
# Those of at most 8,000 nodes, on which methods with dense N x N matrices run.
DEFAULT_SMALL = {"cora", "citeseer", "wiki", "acm", "amazon_photo", "uai2010", "cora_ml"}
DEFAULT_ATTACKED = ("cora_ml", "pubmed", "polblogs")
DEFAULT_ATTACK_RATE = 25
# Graphs whose run takes more than a minute have five seeds.
DEFAULT_SEEDS, DEFAULT_FEW_SEEDS = range(10), range(5)
DEFAULT_SLOW = {name for name in LFR if name.startswith("lfr_50000")}
END_RATES = (0, 50)

# Attacked graphs on which networks are trained, at all rates and without an attack.
DEFENCE = ("cora", "citeseer", "pubmed", "polblogs")
# Those of them on which DeepRobust's models run. RGCN has dense matrices.
DEFENCE_BY_OTHERS = ("cora", "citeseer")

# Nodes and edges of the real graphs of configs/large/; each graph has its own config.
LARGE = {
    "dblp": (17_716, 52_867),
    "coauthor_cs": (18_333, 81_894),
    "amazon_photo": (7_650, 119_081),
    "facebook": (22_470, 170_823),
    "amazon_computers": (13_752, 245_861),
    "coauthor_physics": (34_493, 247_962),
    "com_dblp": (317_080, 1_049_866),
}
LARGE_SEEDS = range(3)

# The paper's baselines; model.kind is the name in lower case.
BASELINES = [name for name in paper.METHODS if name != "USER"]
# AGE's code has other settings for some data sets. The features of Wiki have lengths in the
# hundreds: without scaling, GAE's embeddings vanish and VGAE's loss is not finite.
BASELINE_SETTINGS = {
    **{
        ("wiki", name): ("baseline.row_norm=l2",)
        for name in ("GAE", "VGAE", "ARGA", "GAE_CG", "ARGA_CG")
    },
    ("citeseer", "AGE"): ("baseline.hops=3", "baseline.positive_share=0.0015"),
    ("wiki", "AGE"): ("baseline.hops=1", "baseline.positive_share=0.0011"),
}
BASELINES_SEEDS = range(5)
# A baseline on the features that the default sees; the tables show it where it differs by more
# points.
PREPARED, PREPARED_DIFFERENCE = " on prepared features", 2.0
READING_FEATURES = [name for name in BASELINES if name != "DeepWalk"]
OPTIONAL = {"paper", *(name + PREPARED for name in READING_FEATURES)}

# Rates of the paper's table, and the number of attacked graphs at each rate, as in the paper. Form
# large takes 100 gradients for a graph instead of one for each flip, and does the same harm
# (tools/bench_attack.py).
OWN_ATTACK_RATES = (5, 10, 15, 20)
OWN_ATTACK_SEEDS = range(5)
OWN_ATTACK = ("data.noise.kind=metattack", "data.noise.attack.form=large")

# Config and settings of each supported model with USER. WITHOUT_USER takes USER away: A' = A and
# only the model's own loss. GCN has no loss of its own and gets that of the graph autoencoder.
_OWN_LOSS = ("train.lr=0.01", "train.epochs=100", "train.restarts=5")
SUPPORTED = {
    "gcn": ("user/{dataset}.yaml", ()),
    **{name: ("user/{dataset}.yaml", _OWN_LOSS) for name in ("vgae", "arga", "dgi", "sage")},
    "smooth": ("default.yaml", ()),
}
WITHOUT_USER = (
    "structure.learnable=false", "loss.npsi_weight=0", "loss.davies_bouldin_weight=0",
)  # fmt: skip
_ALONE = {
    "gcn": (
        "loss.reconstruction_weight=1", "loss.reconstruction_form=cross_entropy", *_OWN_LOSS,
    ),
    "smooth": ("model.labels=kmeans",),
}  # fmt: skip
SUPPORTED_SEEDS = range(2)

# The same model and data in one batch and in sixteen. An epoch in parts makes sixteen updates.
PARTS = ("pubmed", "coauthor_cs")
PARTS_METHODS = {"full batch": (), "in parts": ("train.mode=partition", "train.epochs=30")}
PARTS_SEEDS = range(5)

# Baselines with link prediction in the paper, except GAE, which is USER without its terms.
LINK_BASELINES = ("ARGA", "GAE_CG", "ARGA_CG")
# Config and seeds of each method on the paper's data sets. LINK_UNSEEN are data sets whose results
# were not used to choose any setting.
LINK_METHODS = {
    "GAE": ("link/gae.yaml", range(3)),
    **{name: ("link/{dataset}.yaml", range(3)) for name in LINK_BASELINES},
    "USER-DGL": ("link/{dataset}.yaml", SEEDS),
}
LINK = ("citeseer", "wiki")
LINK_UNSEEN = ("cora", "pubmed", "coauthor_physics")
LINK_UNSEEN_SEEDS = range(3)

# For each data set: name, config, overrides. The others are compared with the first. Variants of
# the loss and of a trained A' change the head only, so they take its labels.
_HEAD = ["model.labels=head"]
_GRADIENT = [*_HEAD, "train.structure_lr=0.02", "loss.observed_edge_weight=10"]
_PAPERS_TERMS = [
    *_HEAD, "loss.code_length_weight=0", "loss.npsi_weight=1", "loss.davies_bouldin_weight=0.1",
    "loss.davies_bouldin_space=embedding",
]  # fmt: skip
_VARIANTS = [
    ("full", "default.yaml", []),
    ("A' = A", "default.yaml", ["structure.prior=uniform"]),
    ("A' by the critic alone", "default.yaml", ["structure.prior=critic"]),
    ("leading axes alone", "default.yaml", ["model.smooth.axes=leading"]),
    ("canonical axes alone", "default.yaml", ["model.smooth.axes=canonical"]),
    ("view of the features alone", "default.yaml", ["model.smooth.self_share=1"]),
    ("one view: 16 hops, own share 0.2", "default.yaml", [
        "model.smooth.hops=16", "model.smooth.self_share=0.2", "model.smooth.weight_power=1",
        "model.smooth.axes=canonical",
    ]),
    ("raw features", "default.yaml", ["features.weighting=none"]),
    ("no nodes moved", "default.yaml", ["model.labels=kmeans"]),
    ("trained head", "default.yaml", _HEAD),
    ("trained head, NPSI and DBI in place of bits", "default.yaml", _PAPERS_TERMS),
    ("trained head, A' learned by gradient too", "default.yaml", _GRADIENT),
    ("paper model", "paper/{dataset}.yaml", []),
    ("paper model without NPSI", "paper/{dataset}.yaml", ["loss.npsi_weight=0"]),
    ("paper model without DBI", "paper/{dataset}.yaml", ["loss.davies_bouldin_weight=0"]),
    ("paper model, A' = A", "paper/{dataset}.yaml", ["structure.learnable=false"]),
]  # fmt: skip
ABLATION = {"cora": _VARIANTS, "citeseer": _VARIANTS, "wiki": _VARIANTS}
# The paper prints its ablation at 10 %.
ABLATION_RATES = (10, 50)
ABLATION_SEEDS = range(10)

# The paper prints two ranges for each weight, "respectively", under the caption "Citeseer and
# Wiki": the first is taken for Citeseer. It draws Wiki alone, at 10 % flips.
PARAMETERS = {
    "alpha": "loss.observed_edge_weight",
    "beta": "loss.davies_bouldin_weight",
}
GRID = {
    "citeseer": {
        "alpha": (0.003125, 0.00625, 0.0125, 0.025, 0.05, 0.1),
        "beta": (0.025, 0.05, 0.1, 0.2, 0.4, 0.8),
    },
    "wiki": {
        "alpha": (0.00625, 0.0125, 0.025, 0.05, 0.1, 0.2),
        "beta": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    },
}
PARAMETERS_RATE = 10
PARAMETERS_SEEDS = range(5)

# Seeds and data sets that --thin keeps, beside two rates of each: half an hour on two cores.
THIN_SEEDS = range(2)
THIN_DATASETS = {
    "baselines": ("cora", "citeseer"),
    "meta-attack-own": ("cora", "citeseer"),
    "link": LINK,
    "default": (
        "cora", "citeseer", "wiki", "acm", "amazon_photo", "lastfm_asia", "email_eu_core",
        "polblogs", "lfr_1000_0.1", "lfr_1000_0.3", "lfr_1000_0.5",
    ),
}  # fmt: skip

CASE_STUDY = [("cora", "default", 50, 0)]


def config_name(table: str, dataset: str, method: str) -> str:
    """Config below configs/ that a method has in a table on a data set."""
    other = OTHER_CONFIGS.get((table, dataset, method))
    return other or METHODS[method].format(dataset=dataset)


def random_noise() -> list[Cell]:
    """Random flips on the paper's sets."""
    return [
        _cell("random-noise", dataset, method, rate, seed)
        for dataset in ("cora", "citeseer", "wiki")
        for method in METHODS_OF[dataset]
        for rate in FLIP_RATES
        for seed in SEEDS
    ]


def meta_attack() -> list[Cell]:
    """The published attacked graphs."""
    cells = []
    for dataset in ATTACKED:
        for method in METHODS_OF[dataset]:
            config = CONFIGS / config_name("meta-attack", dataset, method)
            for rate in ATTACK_RATES:
                cells += [
                    Cell(
                        "meta-attack", dataset, method, "file", rate, seed, config,
                        _data_overrides(*attacked(dataset, rate)),
                    )
                    for seed in SEEDS[: FEW_SEEDS.get(dataset)]
                ]  # fmt: skip
    return cells


def baselines() -> list[Cell]:
    """The default and the paper's baselines, from the same code, under random flips."""
    return [
        _cell("baselines", dataset, method, rate, seed, config, overrides)
        for dataset in ("cora", "citeseer", "wiki")
        for method, config, overrides in _with_rivals(dataset)
        for rate in FLIP_RATES
        for seed in BASELINES_SEEDS
    ]


def meta_attack_own() -> list[Cell]:
    """The same under our own meta-attack, each seed with a graph of its own."""
    return [
        Cell(
            "meta-attack-own", dataset, method, "metattack", rate, seed,
            CONFIGS / config.format(dataset=dataset),
            (
                *_data_overrides(*DATASETS[dataset]),
                *overrides,
                *OWN_ATTACK,
                f"data.noise.rate={rate / 100:g}",
            ),
        )
        for dataset in ("cora", "citeseer", "wiki")
        for method, config, overrides in _with_rivals(dataset)
        for rate in OWN_ATTACK_RATES
        for seed in OWN_ATTACK_SEEDS
    ]  # fmt: skip


def supported() -> list[Cell]:
    """Each supported model with USER and without."""
    return [
        _cell(
            "supported", dataset, method, rate, seed, config,
            (f"model.encoder={encoder}", *overrides),
        )
        for dataset in ("cora", "citeseer")
        for encoder, (config, settings) in SUPPORTED.items()
        for method, overrides in (
            (encoder, (*settings, *WITHOUT_USER, *_ALONE.get(encoder, ()))),
            (f"{encoder} with USER", settings),
        )
        for rate in END_RATES
        for seed in SUPPORTED_SEEDS
    ]  # fmt: skip


def default() -> list[Cell]:
    """The default config on every graph with labels, beside its floors and other tools."""
    # Each graph: its name in the table, data, number of clusters, kind and rate of noise.
    graphs = [
        *(
            (name, *DATASETS[name], "random_flip" if rate else "none", rate)
            for name in DEFAULT
            for rate in END_RATES
        ),
        *(
            (f"{name}_attacked", *attacked(name, DEFAULT_ATTACK_RATE), "file", DEFAULT_ATTACK_RATE)
            for name in DEFAULT_ATTACKED
        ),
        *((name, *FEATURELESS[name], "none", 0) for name in FEATURELESS),
    ]
    cells = []
    for name, data, num_clusters, kind, rate in graphs:
        settings = (*_data_overrides(data, num_clusters), *_flips(kind, rate))
        methods = {"default": "user-dgl", "floors": "floors", **dict.fromkeys(RIVALS, "rival")}
        if name in FEATURELESS or name == "polblogs_attacked":
            del methods["floors"]
        if name in DEFAULT:
            fitting = [m for m in PYAGC if name in DEFAULT_SMALL or not PYAGC[m].dense]
            methods |= dict.fromkeys(fitting, "pyagc")
        cells += [
            Cell(
                "default", name, method, kind, rate, seed, CONFIGS / METHODS["default"], settings,
                by=by, with_floors=False,
            )
            for seed in (DEFAULT_FEW_SEEDS if name in DEFAULT_SLOW else DEFAULT_SEEDS)
            for method, by in methods.items()
        ]  # fmt: skip
    return cells


def defence() -> list[Cell]:
    """Networks for node classification on attacked graphs, on A and on A', and robust networks."""
    networks = {f"{network}{on}": "defence" for network in NETWORKS for on in ("", CLEANED)}
    return [
        Cell(
            "defence", dataset, method, "file" if rate else "none", rate, seed,
            CONFIGS / METHODS["default"],
            _data_overrides(*(attacked(dataset, rate) if rate else ATTACKED[dataset])),
            by=by, with_floors=False,
        )
        for dataset in DEFENCE
        for method, by in {
            **networks,
            **dict.fromkeys(MODELS if dataset in DEFENCE_BY_OTHERS else (), "deeprobust"),
        }.items()
        for rate in (0, *ATTACK_RATES)
        for seed in SEEDS
    ]  # fmt: skip


def large() -> list[Cell]:
    """The real graphs of configs/large/, each config as it is."""
    return [
        Cell("large", dataset, "default", "none", 0, seed, CONFIGS / f"large/{dataset}.yaml")
        for dataset in LARGE
        for seed in LARGE_SEEDS
    ]


def parts() -> list[Cell]:
    """Full batch against one batch of METIS parts at a time."""
    return [
        Cell(
            "parts", dataset, method, "none", 0, seed,
            CONFIGS / f"large/{dataset}_gcn.yaml", overrides,
        )
        for dataset in PARTS
        for method, overrides in PARTS_METHODS.items()
        for seed in PARTS_SEEDS
    ]  # fmt: skip


def link() -> list[Cell]:
    """Link prediction under random flips; edges and non-edges are held out by the seed."""
    ours, _ = LINK_METHODS["USER-DGL"]
    return [
        *(
            _cell(
                "link",
                dataset,
                method,
                rate,
                seed,
                config,
                _of_baseline(dataset, method) if method in LINK_BASELINES else (),
            )
            for dataset in LINK
            for method, (config, seeds) in LINK_METHODS.items()
            for rate in FLIP_RATES
            for seed in seeds
        ),
        *(
            _cell("link", dataset, "USER-DGL", rate, seed, ours)
            for dataset in LINK_UNSEEN
            for rate in END_RATES
            for seed in LINK_UNSEEN_SEEDS
        ),
    ]


def ablation() -> list[Cell]:
    """Variants of the default, each without one part or with another in its place."""
    return [
        _cell("ablation", dataset, name, rate, seed, config, overrides)
        for dataset, variants in ABLATION.items()
        for name, config, overrides in variants
        for rate in ABLATION_RATES
        for seed in ABLATION_SEEDS
    ]


def parameters() -> list[Cell]:
    """Alpha and beta of the paper's model over the paper's grid, one varied at a time."""
    return [
        _cell(
            "parameters", dataset, f"{name}={value:g}", PARAMETERS_RATE, seed,
            METHODS["paper"], [f"{PARAMETERS[name]}={value}"],
        )
        for dataset, grid in GRID.items()
        for name, values in grid.items()
        for value in values
        for seed in PARAMETERS_SEEDS
    ]  # fmt: skip


def case_study() -> list[Cell]:
    """Runs whose graphs are drawn."""
    return [_cell("case-study", *which, keeps_run=True) for which in CASE_STUDY]


# The paper's tables in the order of the paper, and our own between them.
TABLES: dict[str, Callable[[], list[Cell]]] = {
    "random-noise": random_noise,
    "meta-attack": meta_attack,
    "baselines": baselines,
    "meta-attack-own": meta_attack_own,
    "supported": supported,
    "default": default,
    "defence": defence,
    "large": large,
    "parts": parts,
    "link": link,
    "ablation": ablation,
    "parameters": parameters,
    "case-study": case_study,
}


def select(cells: Iterable[Cell], **wanted) -> list[Cell]:
    """The cells whose attributes are among the values wanted.

    Parameters
    ----------
    cells : iterable of Cell
    wanted
        ``dataset``, ``method``, ``rate``, ``seed``: collections, or None for all. Without
        ``method``, optional methods stay out.

    Returns
    -------
    list of Cell
    """
    chosen = []
    for cell in cells:
        optional = cell.method in OPTIONAL and wanted.get("method") is None
        fits = all(v is None or getattr(cell, name) in v for name, v in wanted.items())
        if fits and not optional:
            chosen.append(cell)
    return chosen


def thin(cells: list[Cell]) -> list[Cell]:
    """Select the cells of a short table: two seeds, the lowest and the highest rate."""
    rates: dict[str, set[int]] = {}
    for cell in cells:
        rates.setdefault(cell.dataset, set()).add(cell.rate)
    return [
        cell
        for cell in cells
        if cell.rate in (min(rates[cell.dataset]), max(rates[cell.dataset]))
        and cell.seed in THIN_SEEDS
        and cell.dataset in THIN_DATASETS.get(cell.table, [cell.dataset])
    ]


def _with_rivals(dataset: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the default and the paper's baselines: name, config and settings of each."""
    config = METHODS["default"]
    return [
        ("default", config, ()),
        *((name, config, _of_baseline(dataset, name)) for name in BASELINES),
        *((name + PREPARED, config, _of_prepared(dataset, name)) for name in READING_FEATURES),
    ]


def _of_baseline(dataset: str, method: str) -> tuple[str, ...]:
    return (f"model.kind={method.lower()}", *BASELINE_SETTINGS.get((dataset, method), ()))


def _of_prepared(dataset: str, method: str) -> tuple[str, ...]:
    # The row norm is that of the section features then.
    settings = _of_baseline(dataset, method)
    kept = (setting for setting in settings if not setting.startswith("baseline.row_norm="))
    return (*kept, "baseline.features=prepared")


def _cell(table, dataset, method, rate, seed, config=None, overrides=(), keeps_run=False) -> Cell:
    """Make a cell with random flips; the default ``config`` is the config of the method."""
    name = config.format(dataset=dataset) if config else config_name(table, dataset, method)
    path = CONFIGS / name
    kind = "random_flip" if rate else "none"
    settings = (*_data_overrides(*DATASETS[dataset]), *overrides, *_flips(kind, rate))
    return Cell(table, dataset, method, kind, rate, seed, path, settings, keeps_run)


def _flips(kind: str, rate: int) -> tuple[str, ...]:
    if kind != "random_flip":
        return ()
    return (f"data.noise.rate={rate / 100:g}", f"data.noise.kind={kind}")


def _data_overrides(data: dict, num_clusters: int) -> tuple[str, ...]:
    # One override replaces the whole section, so that nothing of the config's own data is left.
    return (f"data={json.dumps(data)}", f"model.num_clusters={num_clusters}")

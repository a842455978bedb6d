"""The methods that the paper compares USER with, by name.

To add a method, write a file with a subclass of `Baseline`, add a line to ``BASELINES``, and add
the name to the choices of `ModelConfig.kind`.
"""

from dataclasses import fields, replace

from user_dgl.baselines.age import AGE
from user_dgl.baselines.arga import ARGA
from user_dgl.baselines.base import Baseline
from user_dgl.baselines.cross_graph import ARGACrossGraph, GAECrossGraph
from user_dgl.baselines.deepwalk import DeepWalk
from user_dgl.baselines.dgi import DGI
from user_dgl.baselines.gae import GAE
from user_dgl.baselines.gca import GCA
from user_dgl.baselines.gic import GIC
from user_dgl.baselines.vgae import VGAE
from user_dgl.config import (
    BaselineConfig,
    Config,
    FeaturesConfig,
    LossConfig,
    ModelConfig,
    StructureConfig,
    TrainConfig,
)
from user_dgl.errors import InputError

BASELINES: dict[str, type[Baseline]] = {
    "deepwalk": DeepWalk,
    "gae": GAE,
    "vgae": VGAE,
    "arga": ARGA,
    "age": AGE,
    "dgi": DGI,
    "gic": GIC,
    "gca": GCA,
    "gae_cg": GAECrossGraph,
    "arga_cg": ARGACrossGraph,
}

# Sections of USER, and the keys of each section that a baseline reads.
_READ = {
    "features": (FeaturesConfig, ("categorical",)),
    "structure": (StructureConfig, ("engine",)),
    "model": (ModelConfig, ("kind", "num_clusters", "auto_clusters")),
    "loss": (LossConfig, ()),
    "train": (TrainConfig, ("resume", "log_every", "checkpoint_every")),
}


def resolve_baseline(config: Config) -> tuple[Config, list[str]]:
    """Copy the baseline's settings into the sections that training reads.

    A baseline reads ``data``, ``eval``, ``seed``, ``device`` and the settings of files from the
    config, and ``features`` with ``baseline.features=prepared``. A null in its section ``baseline``
    is replaced by the value of its paper. The other sections are replaced by ones that describe the
    baseline: no learned graph, its widths, epochs and scaling of features, and the scores of links
    by its embeddings. Settings of USER stay as they are, and so do settings that this function
    returned before.

    Returns
    -------
    Config, list of str
        The settings, and warnings about settings without effect.

    Raises
    ------
    InputError
        The baseline cannot run on the device asked for.
    """
    kind = config.model.kind
    if kind == "user":
        return config, config.inert_settings()
    method = BASELINES[kind]
    if method.cpu_only and config.device == "cuda":
        raise InputError(f"model.kind={kind} runs on the CPU: use device=cpu")
    chosen, unused = {}, []
    for item in fields(BaselineConfig):
        default, given = (getattr(c, item.name) for c in (method.defaults, config.baseline))
        if default is None and given is not None:
            unused.append(f"baseline.{item.name} has no effect with model.kind={kind}")
        chosen[item.name] = default if given is None or default is None else given
    if method.one_layer and len(config.baseline.hidden_feats or ()) > 1:
        unused.append(
            f"baseline.hidden_feats: model.kind={kind} has one layer, which takes the last width"
        )
    prepared = config.baseline.features == "prepared"
    if prepared:
        # The section features has a row norm of its own. `inert_settings` reads the new settings,
        # from which the norm is gone.
        if config.baseline.row_norm is not None:
            unused.append("baseline.row_norm has no effect with baseline.features=prepared")
        chosen["row_norm"] = None
    baseline = BaselineConfig(**chosen)
    of_links = config.task == "link_prediction"
    # Each section with the keys that a baseline reads, and defaults for all other keys.
    bare = {
        name: replace(cls(), **{key: getattr(getattr(config, name), key) for key in keys})
        for name, (cls, keys) in _READ.items()
    }
    new = replace(
        config,
        device="cpu" if method.cpu_only else config.device,
        baseline=baseline,
        features=config.features
        if prepared
        else replace(bare["features"], row_norm=baseline.row_norm or "none"),
        structure=replace(bare["structure"], learnable=False),
        model=replace(
            bare["model"],
            encoder=method.encoder_name,
            hidden_feats=baseline.hidden_feats,
            dropout=0.0,
            logit_dropout=0.0,
            observed_mix=0.0,
        ),
        loss=bare["loss"],
        train=replace(bare["train"], epochs=baseline.epochs),
        links=replace(config.links, score="dot" if of_links else config.links.score),
    )
    dead = [name for name in bare if getattr(config, name) not in (bare[name], getattr(new, name))]
    if dead:
        unused.append(
            f"model.kind={kind} has a section of its own, baseline; the settings of USER in "
            f"{', '.join(dead)} have no effect"
        )
    return new, [*new.inert_settings(), *unused]

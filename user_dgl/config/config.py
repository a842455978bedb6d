"""All settings of a run, and the checks across sections.

Every key is a dataclass field with a type, a default, a one-line meaning and, where it has one, a
range or a list of choices; each section stands in the file of its name. Precedence: default < YAML
file < override.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from user_dgl.config.baseline import BaselineConfig
from user_dgl.config.data import DataConfig
from user_dgl.config.distributed import DistributedConfig
from user_dgl.config.eval import EvalConfig
from user_dgl.config.features import FeaturesConfig
from user_dgl.config.links import LinksConfig
from user_dgl.config.loss import LossConfig
from user_dgl.config.model import _DRAWING, _WITH_LOSS, ModelConfig
from user_dgl.config.schema import Section, key, section
from user_dgl.config.structure import StructureConfig
from user_dgl.config.train import TrainConfig
from user_dgl.errors import InputError


@dataclass(frozen=True)
class Config(Section):
    """All settings of a run."""

    seed: int = key(0, "seed of everything random in training", low=0, high=2**31 - 1)
    task: str = key(
        "clustering",
        "what the run is for: clustering; link_prediction: edges are held out of the graph, and "
        "scores of node pairs are learned from the others",
        choices=("clustering", "link_prediction"),
    )
    output_dir: str | None = key(None, "run directory; null: outputs/<config>/seed<seed>")
    overwrite: bool = key(False, "replace the run in output_dir")
    device: str = key(
        "auto",
        "cuda: a GPU, one for each process, with engine csr; auto: that where torch sees one, "
        "else the CPU, which also serves engine dgl and train.mode=partition",
        choices=("auto", "cpu", "cuda"),
    )
    data: DataConfig = section(DataConfig, "the attributed graph")
    features: FeaturesConfig = section(FeaturesConfig, "preparation of the features")
    structure: StructureConfig = section(StructureConfig, "the learned graph A'")
    model: ModelConfig = section(ModelConfig, "encoder and head")
    loss: LossConfig = section(LossConfig, "loss terms")
    train: TrainConfig = section(TrainConfig, "optimisation")
    baseline: BaselineConfig = section(
        BaselineConfig, "a rival in place of USER; null: the setting of its paper"
    )
    distributed: DistributedConfig = section(DistributedConfig, "several processes")
    links: LinksConfig = section(LinksConfig, "the task link_prediction")
    eval: EvalConfig = section(EvalConfig, "after training")

    def __post_init__(self):
        super().__post_init__()
        if self.structure.prior == "link_critic" and self.structure.critic.power is None:
            raise InputError("structure.critic.power=null needs structure.prior=critic: set it")
        noise, candidates = self.data.noise, self.structure.candidates
        if noise.kind == "file" and noise.file is None:
            raise InputError("data.noise.kind=file needs data.noise.file=FILE.npz")
        if candidates.same_cluster and not candidates.refresh_every:
            raise InputError(
                "structure.candidates.same_cluster needs structure.candidates.refresh_every above "
                "0: clusters exist only after some epochs"
            )
        model, loss = self.model, self.loss
        if (model.encoder == "smooth") != (model.head == "centroid"):
            raise InputError(
                "model.encoder=smooth and model.head=centroid go together: set both or none, got "
                f"{model.encoder} and {model.head}"
            )
        if model.encoder == "smooth" and model.observed_mix:
            raise InputError("model.encoder=smooth smooths over A' alone: set model.observed_mix=0")
        if model.encoder == "smooth" and self.train.consensus != "none":
            raise InputError("train.consensus joins replicas, and model.encoder=smooth has one")
        if model.encoder == "smooth" and self.train.restarts > 1:
            raise InputError(
                "train.restarts: model.encoder=smooth has nothing to restart, as k-means takes the "
                "best of 20 starts: set it to 1"
            )
        if model.encoder != "smooth" and model.labels != "head":
            raise InputError(f"model.labels={model.labels} needs model.encoder=smooth")
        if model.head != "centroid" and loss.mixture_weight:
            raise InputError("loss.mixture_weight needs model.head=centroid")
        if self.train.mode == "partition":
            self._check_partition()
        if self.overwrite and self.train.resume:
            raise InputError("overwrite and train.resume exclude each other: set one of them")
        if self.device == "cuda" and self.structure.engine == "dgl":
            raise InputError("structure.engine=dgl runs on the CPU: use device=cpu or engine=csr")

    def _check_partition(self) -> None:
        """What a part cannot do alone."""
        model, loss = self.model, self.loss
        beyond = loss.davies_bouldin_weight and loss.davies_bouldin_space != "features"
        self._refuse(
            "train.mode=partition",
            "train.mode=full",
            ("model.encoder", model.encoder, model.encoder == "smooth", "gcn or gae"),
            ("loss.davies_bouldin_space", loss.davies_bouldin_space, beyond, "features"),
            ("device", self.device, self.device == "cuda", "cpu"),
        )

    @property
    def draws_for_supporting(self) -> bool:
        """Whether the encoder's own loss draws pairs of nodes."""
        return self.loss.supporting_weight > 0 and self.model.encoder in _DRAWING

    @property
    def learns_structure(self) -> bool:
        """Whether the weights of A' are trained."""
        return self.structure.learnable and self.train.structure_lr != 0

    @property
    def fits_gpu(self) -> bool:
        """Whether a GPU can train by these settings."""
        return self.train.mode == "full" and self.structure.engine != "dgl"

    def check_distributed(self) -> None:
        """What several processes cannot do together.

        Raises
        ------
        InputError
        """
        mode, kind = self.train.mode, self.model.kind
        self._refuse(
            "a distributed run",
            "a single process",
            ("model.kind", kind, kind != "user", "user"),
            ("train.mode", mode, mode != "full", "full"),
            ("task", self.task, self.task != "clustering", "clustering"),
        )

    def _refuse(self, what: str, otherwise: str, *more: tuple) -> None:
        """Refuse settings that need all of the graph at hand, and those of ``more``."""
        model, train, loss = self.model, self.train, self.loss
        refresh = self.structure.candidates.refresh_every
        reconstruction = loss.reconstruction_weight
        unfit = (
            *more,
            ("model.encoder", model.encoder, model.encoder in _WITH_LOSS, "gcn or gae"),
            ("model.observed_mix", model.observed_mix, model.observed_mix != 0, "0"),
            ("train.restarts", train.restarts, train.restarts != 1, "1"),
            ("train.consensus", train.consensus, train.consensus != "none", "none"),
            ("loss.reconstruction_weight", reconstruction, reconstruction != 0, "0"),
            ("structure.candidates.refresh_every", refresh, refresh != 0, "0"),
        )
        for name, value, is_unfit, instead in unfit:
            if is_unfit:
                raise InputError(
                    f"{what} needs {name}={instead}, got {_shown(value)}: set it, or {otherwise}"
                )

    def inert_settings(self) -> list[str]:
        """Settings away from their default that have no effect in this run, one line each."""
        data, structure, loss = self.data, self.structure, self.loss
        candidates, attack = structure.candidates, data.noise.attack
        drawn = candidates.k_hop or candidates.uniform or candidates.same_cluster
        some_candidates = drawn or candidates.feature_knn
        dead = (
            (not data.noise.flips, "data.noise.kind", "data.noise.rate"),
            (not data.noise.flips, "data.noise.kind", "data.noise.seed"),
            (data.noise.kind != "metattack", "data.noise.kind", "data.noise.attack"),
            (data.noise.flips and data.noise.rate == 0, "data.noise.rate", "data.noise.kind"),
            (self.links.score == "dot", "links.score", "links.rising"),
            (data.noise.kind != "file", "data.noise.kind", "data.noise.file"),
            (attack.form == "exact", "data.noise.attack.form", "data.noise.attack.steps"),
            (attack.form == "exact", "data.noise.attack.form", "data.noise.attack.block_nodes"),
            (data.kind != "synthetic", "data.kind", "data.synthetic"),
            (data.kind not in ("planetoid", "dgl"), "data.kind", "data.name"),
            (data.kind in ("edge_list", "synthetic"), "data.kind", "data.path"),
            (data.kind != "dgl", "data.kind", "data.trusted"),
            (data.kind != "edge_list", "data.kind", "data.edges"),
            (data.kind != "edge_list", "data.kind", "data.header"),
            (data.kind != "edge_list", "data.kind", "data.columns"),
            (data.kind != "edge_list", "data.kind", "data.features"),
            (data.kind != "edge_list", "data.kind", "data.labels"),
            (data.kind not in ("edge_list", "npz", "dgl"), "data.kind", "data.missing_features"),
            (not structure.learnable, "structure.learnable", "structure.prior"),
            (not structure.learnable, "structure.learnable", "structure.candidates"),
            (not structure.learnable, "structure.learnable", "train.structure_lr"),
            (self.train.structure_lr == 0, "train.structure_lr", "loss.observed_edge_weight"),
            (
                self.train.structure_lr == 0,
                "train.structure_lr",
                "structure.candidates.refresh_every",
            ),
            (not structure.learnable, "structure.learnable", "loss.observed_edge_weight"),
            (not structure.learnable, "structure.learnable", "structure.shared"),
            (self.train.restarts == 1, "train.restarts", "structure.shared"),
            (self.train.structure_lr == 0, "train.structure_lr", "structure.shared"),
            (
                self.train.structure_lr == 0,
                "train.structure_lr",
                "structure.candidates.same_cluster",
            ),
            (
                not structure.learnable and self.task == "clustering",
                "structure.learnable",
                "structure.critic",
            ),
            (structure.prior != "feature_cosine", "structure.prior", "structure.prior_power"),
            (
                structure.prior not in ("critic", "link_critic") and self.task == "clustering",
                "structure.prior",
                "structure.critic",
            ),
            (self.task != "link_prediction", "task", "links"),
            (not candidates.k_hop, "structure.candidates.k_hop", "structure.candidates.hops"),
            (
                not some_candidates,
                "structure.candidates.feature_knn",
                "structure.candidates.initial_weight",
            ),
            (not drawn, "structure.candidates.k_hop", "structure.candidates.refresh_every"),
            (
                candidates.refresh_every >= self.train.epochs,
                "train.epochs",
                "structure.candidates.refresh_every",
            ),
            (self.train.plateau_factor == 1, "train.plateau_factor", "train.plateau_patience"),
            (self.train.mode != "partition", "train.mode", "train.partition"),
            (self.model.kind == "user", "model.kind", "baseline"),
            (not loss.npsi_weight, "loss.npsi_weight", "loss.npsi_observed"),
            (self.model.num_clusters != "auto", "model.num_clusters", "model.auto_clusters"),
            (
                self.model.encoder != "smooth" and self.model.num_clusters != "auto",
                "model.encoder",
                "model.smooth",
            ),
            (self.model.encoder == "smooth", "model.encoder", "model.hidden_feats"),
            (self.model.head != "centroid", "model.head", "model.temperature"),
            (
                not loss.davies_bouldin_weight,
                "loss.davies_bouldin_weight",
                "loss.davies_bouldin_space",
            ),
            (
                not loss.davies_bouldin_weight,
                "loss.davies_bouldin_weight",
                "loss.davies_bouldin_form",
            ),
            (
                not loss.observed_edge_weight,
                "loss.observed_edge_weight",
                "loss.observed_edge_form",
            ),
            (
                not loss.reconstruction_weight and self.model.encoder not in _DRAWING,
                "loss.reconstruction_weight",
                "loss.reconstruction_samples",
            ),
            (
                not loss.reconstruction_weight,
                "loss.reconstruction_weight",
                "loss.reconstruction_form",
            ),
            (self.model.encoder not in _WITH_LOSS, "model.encoder", "loss.supporting_weight"),
        )
        default = Config()
        lines = []
        for is_dead, cause, name in dead:
            value = _get(self, name)
            if is_dead and value != _get(default, name):
                shown = name if dataclasses.is_dataclass(value) else f"{name}={_shown(value)}"
                lines.append(f"{shown} has no effect with {cause}={_shown(_get(self, cause))}")
        return lines


def _get(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""All settings of a run, and the checks that involve several sections.

Every key is a dataclass field with a type, a default and a meaning, and possibly a range or a list
of choices. Each section is defined in the module of the same name. A YAML file takes precedence
over the defaults, and an override takes precedence over a YAML file.
"""

from dataclasses import dataclass

from user_dgl.config.baseline import BaselineConfig
from user_dgl.config.data import DataConfig
from user_dgl.config.distributed import DistributedConfig
from user_dgl.config.eval import EvalConfig
from user_dgl.config.features import FeaturesConfig
from user_dgl.config.links import LinksConfig
from user_dgl.config.loss import LossConfig
from user_dgl.config.model import ModelConfig
from user_dgl.config.modes import check_distributed, check_partition
from user_dgl.config.schema import Section, inert_settings, key, only_with, only_without, section
from user_dgl.config.structure import StructureConfig
from user_dgl.config.train import TrainConfig
from user_dgl.errors import InputError

# The largest seed, which the generators of all libraries take.
MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Config(Section):
    """All settings of a run."""

    seed: int = key(0, "Seed of all random numbers in training.", low=0, high=MOST_SEED)
    task: str = key(
        "clustering",
        "Purpose of the run. clustering: nodes are clustered. link_prediction: some edges are held "
        "out of the graph, and scores of node pairs are learned from the remaining edges.",
        choices=("clustering", "link_prediction"),
    )
    output_dir: str | None = key(None, "Run directory. null: outputs/<config>/seed<seed>.")
    overwrite: bool = key(False, "Replace a run that is already in output_dir.")
    device: str = key(
        "auto",
        "Device for training. cuda: a GPU for each process; structure.engine=dgl and "
        "train.mode=partition cannot use a GPU. auto: a GPU if torch finds one and the settings "
        "can use it, else the CPU.",
        choices=("auto", "cpu", "cuda"),
    )
    data: DataConfig = section(DataConfig, "the attributed graph")
    features: FeaturesConfig = section(FeaturesConfig, "preparation of the node features")
    structure: StructureConfig = section(StructureConfig, "the learned graph A'")
    model: ModelConfig = section(ModelConfig, "encoder, head and number of clusters")
    loss: LossConfig = section(LossConfig, "the loss terms")
    train: TrainConfig = section(TrainConfig, "the optimisation")
    baseline: BaselineConfig = section(
        BaselineConfig,
        "settings of a baseline method trained in place of USER; null: the value of its paper",
        only_without("model.kind", "user"),
    )
    distributed: DistributedConfig = section(DistributedConfig, "training by several processes")
    links: LinksConfig = section(
        LinksConfig,
        "the edges held out by task: link_prediction",
        only_with("task", "link_prediction"),
    )
    eval: EvalConfig = section(EvalConfig, "computations after training")

    def __post_init__(self) -> None:
        super().__post_init__()
        noise, candidates = self.data.noise, self.structure.candidates
        if noise.kind == "file" and noise.file is None:
            raise InputError("data.noise.kind=file needs data.noise.file=FILE.npz")
        if candidates.same_cluster and not candidates.refresh_every:
            raise InputError(
                "structure.candidates.same_cluster needs structure.candidates.refresh_every above "
                "0: clusters exist only after some epochs"
            )
        model, loss = self.model, self.loss
        if model.traits.learns == (model.head == "centroid"):
            raise InputError(
                "model.encoder=smooth and model.head=centroid go together: set both or none, got "
                f"{model.encoder} and {model.head}"
            )
        if not model.traits.learns and model.observed_mix:
            raise InputError("model.encoder=smooth smooths over A' alone: set model.observed_mix=0")
        if not model.traits.learns and self.train.consensus != "none":
            raise InputError(
                "train.consensus joins replicas, and model.encoder=smooth has one replica: set "
                "train.consensus=none"
            )
        if not model.traits.learns and self.train.restarts > 1:
            raise InputError(
                "train.restarts: model.encoder=smooth cannot be restarted, because it starts from "
                "the best of 20 runs of k-means: set train.restarts=1"
            )
        if model.traits.learns and model.labels != "head":
            raise InputError(f"model.labels={model.labels} needs model.encoder=smooth")
        if model.head != "centroid" and loss.mixture_weight:
            raise InputError("loss.mixture_weight needs model.head=centroid")
        if self.train.mode == "partition":
            check_partition(self)
        if self.overwrite and self.train.resume:
            raise InputError("overwrite and train.resume exclude each other: set one of them")
        if self.device == "cuda" and self.structure.engine == "dgl":
            raise InputError("structure.engine=dgl runs on the CPU: use device=cpu or engine=csr")

    @property
    def draws_for_supporting(self) -> bool:
        """Whether the encoder's own loss is used and draws pairs of nodes."""
        return self.loss.supporting_weight > 0 and self.model.traits.draws_pairs

    @property
    def learns_structure(self) -> bool:
        """Whether the weights of A' are trained."""
        return self.structure.learnable and self.train.structure_lr != 0

    @property
    def fits_gpu(self) -> bool:
        """Whether training with these settings can run on a GPU."""
        return self.train.mode == "full" and self.structure.engine != "dgl"

    def check_distributed(self) -> None:
        """Refuse settings that training by several processes does not support.

        Raises
        ------
        InputError
            A setting is not supported.
        """
        check_distributed(self)

    def inert_settings(self) -> list[str]:
        """One line for each setting that differs from its default but has no effect in this run."""
        return inert_settings(self)

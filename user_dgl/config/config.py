"""All settings of a run, and the checks across sections.

Every key is a dataclass field with a type, a default, a one-line meaning and, where it has one, a
range or a list of choices; each section stands in the file of its name. Precedence: default < YAML
file < override.
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
        BaselineConfig,
        "a rival in place of USER; null: the setting of its paper",
        only_without("model.kind", "user"),
    )
    distributed: DistributedConfig = section(DistributedConfig, "several processes")
    links: LinksConfig = section(
        LinksConfig, "the task link_prediction", only_with("task", "link_prediction")
    )
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
        if model.traits.learns == (model.head == "centroid"):
            raise InputError(
                "model.encoder=smooth and model.head=centroid go together: set both or none, got "
                f"{model.encoder} and {model.head}"
            )
        if not model.traits.learns and model.observed_mix:
            raise InputError("model.encoder=smooth smooths over A' alone: set model.observed_mix=0")
        if not model.traits.learns and self.train.consensus != "none":
            raise InputError("train.consensus joins replicas, and model.encoder=smooth has one")
        if not model.traits.learns and self.train.restarts > 1:
            raise InputError(
                "train.restarts: model.encoder=smooth has nothing to restart, as k-means takes the "
                "best of 20 starts: set it to 1"
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
        """Whether the encoder's own loss draws pairs of nodes."""
        return self.loss.supporting_weight > 0 and self.model.traits.draws_pairs

    @property
    def learns_structure(self) -> bool:
        """Whether the weights of A' are trained."""
        return self.structure.learnable and self.train.structure_lr != 0

    @property
    def fits_gpu(self) -> bool:
        """Whether a GPU can train by these settings."""
        return self.train.mode == "full" and self.structure.engine != "dgl"

    def check_distributed(self) -> None:
        """Refuse what several processes cannot do together.

        Raises
        ------
        InputError
        """
        check_distributed(self)

    def inert_settings(self) -> list[str]:
        """Settings away from their default that have no effect in this run, one line each."""
        return inert_settings(self)

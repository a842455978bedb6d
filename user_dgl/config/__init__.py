"""Settings of a run, read from strict YAML and from overrides ``section.key=value``.

Each section of the settings is one frozen dataclass. No module of this folder imports torch, so
that ``user-dgl config`` and ``--help`` start fast.
"""

from user_dgl.config.baseline import BaselineConfig
from user_dgl.config.config import Config
from user_dgl.config.data import AttackConfig, DataConfig, NoiseConfig, SyntheticConfig
from user_dgl.config.distributed import DistributedConfig
from user_dgl.config.eval import EvalConfig
from user_dgl.config.features import FeaturesConfig
from user_dgl.config.links import LinksConfig
from user_dgl.config.load import config_name, data_name, default_config, load_config, to_yaml
from user_dgl.config.loss import LossConfig
from user_dgl.config.model import AutoClustersConfig, ModelConfig, SmoothConfig
from user_dgl.config.structure import CandidatesConfig, CriticConfig, StructureConfig
from user_dgl.config.train import PartitionConfig, TrainConfig

__all__ = [
    "AttackConfig",
    "AutoClustersConfig",
    "BaselineConfig",
    "CandidatesConfig",
    "Config",
    "CriticConfig",
    "DataConfig",
    "DistributedConfig",
    "EvalConfig",
    "FeaturesConfig",
    "LinksConfig",
    "LossConfig",
    "ModelConfig",
    "NoiseConfig",
    "PartitionConfig",
    "SmoothConfig",
    "StructureConfig",
    "SyntheticConfig",
    "TrainConfig",
    "config_name",
    "data_name",
    "default_config",
    "load_config",
    "to_yaml",
]

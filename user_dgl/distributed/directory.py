"""A cut graph on disk: for each rank what it holds, and for the first what a result needs.

Written once by ``user-dgl partition``; a rank then reads its own file and never the whole graph.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import scipy.sparse as sp
import torch

from user_dgl.clustering.smoothed_view import SmoothedView
from user_dgl.config import Config, load_config, to_yaml
from user_dgl.config.schema import to_plain
from user_dgl.distributed.shards import ExchangePlan, RankData, Shard
from user_dgl.errors import InputError
from user_dgl.features.matrix import ColumnStatistics
from user_dgl.graph.parts import Part
from user_dgl.runtime.files import write_atomically
from user_dgl.training.checkpoint import load_checkpoint, save_checkpoint

# Settings that the parts depend on: a run with others needs parts of its own.
_DECISIVE = ("seed", "data", "features", "structure", "model")
_REMEDY = "write the folder again with user-dgl partition"
_NUMBERS = ("num_nodes", "num_pairs", "num_observed")


class PartitionDirectory:
    """Files of a cut graph.

    Attributes
    ----------
    path : Path
    """

    config_file, whole_file = "config.yaml", "whole.pt"

    def __init__(self, path: Path):
        self.path = Path(path)

    def check_free(self) -> None:
        """Refuse a folder that holds something."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(f"{self.path}: not empty; choose another folder")

    def write(self, config: Config, holdings: list[RankData], whole: dict[str, Any]) -> None:
        """Write the folder, whole or not at all.

        Parameters
        ----------
        config : Config
            With the root of the data resolved.
        holdings : list of RankData
        whole : dict
            What the first rank needs to report: tensors and plain types.

        Raises
        ------
        InputError
        """
        self.check_free()
        aside = PartitionDirectory(self.path.with_name(f".{self.path.name}.part"))
        try:
            shutil.rmtree(aside.path, ignore_errors=True)
            aside.path.mkdir(parents=True)
            for rank, holding in enumerate(holdings):
                save_checkpoint(aside._rank_file(rank, len(holdings)), _state(holding))
            save_checkpoint(aside.path / self.whole_file, whole)
            text = to_yaml(config).encode()
            write_atomically(aside.path / self.config_file, lambda file: file.write(text))
            os.replace(aside.path, self.path)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{self.path}: cannot be written: {reason}") from None
        finally:
            shutil.rmtree(aside.path, ignore_errors=True)

    def check(self, config: Config, num_ranks: int) -> None:
        """Refuse settings or a number of ranks that the parts are not made for.

        Raises
        ------
        InputError
        """
        file = self.path / self.config_file
        if not file.exists():
            raise InputError(f"{self.path}: no partition there: make one with user-dgl partition")
        made = load_config(file)
        before, now = to_plain(made), to_plain(config)
        before["data"]["root"] = now["data"]["root"] = None
        changed = [name for name in _DECISIVE if before[name] != now[name]]
        if changed:
            raise InputError(
                f"{self.path}: made with other settings of {', '.join(changed)}: make it anew with "
                "user-dgl partition"
            )
        if not self._rank_file(0, num_ranks).exists():
            parts = len(list(self.path.glob("rank-*.pt")))
            raise InputError(
                f"{self.path}: {parts} parts for {num_ranks} processes: start {parts}, or make "
                f"{num_ranks} parts"
            )

    def read_whole(self) -> dict[str, Any]:
        """What `write` got for the first rank."""
        return load_checkpoint(self.path / self.whole_file, _REMEDY)

    def read_rank_data(self, rank: int, size: int) -> RankData:
        """What a rank holds.

        Raises
        ------
        InputError
        """
        file = self._rank_file(rank, size)
        try:
            return _rank_data(load_checkpoint(file, _REMEDY))
        except (KeyError, TypeError) as error:
            raise InputError(f"{file}: not of this version of user_dgl ({error})") from None

    def _rank_file(self, rank: int, size: int) -> Path:
        return self.path / f"rank-{rank}-of-{size}.pt"


def _state(holding: RankData) -> dict[str, Any]:
    """Tensors and plain types of a holding."""
    shard, feat, view = holding.shard, holding.feat, holding.view
    arrays = {"data": feat.data, "indices": feat.indices, "indptr": feat.indptr}
    return {
        "part": vars(shard.part),
        "nodes": vars(shard.nodes),
        "pairs": vars(shard.pairs),
        "pair_place": shard.pair_place,
        "numbers": {name: getattr(holding, name) for name in _NUMBERS},
        "feat": {name: torch.from_numpy(array) for name, array in arrays.items()},
        "shape": feat.shape,
        "mean": torch.from_numpy(holding.columns.mean),
        "variance": torch.from_numpy(holding.columns.variance),
        "observed": holding.observed,
        "first_weight": holding.first_weight,
        "digest": holding.digest,
        "view": None
        if view is None
        else vars(replace(view, clusters=torch.from_numpy(view.clusters))),
    }


def _rank_data(state: dict[str, Any]) -> RankData:
    feat, view = {name: array.numpy() for name, array in state["feat"].items()}, state["view"]
    if view is not None:
        view = SmoothedView(**{**view, "clusters": view["clusters"].numpy()})
    return RankData(
        shard=Shard(
            Part(**state["part"]),
            ExchangePlan(**state["nodes"]),
            ExchangePlan(**state["pairs"]),
            state["pair_place"],
        ),
        **state["numbers"],
        feat=sp.csr_matrix((feat["data"], feat["indices"], feat["indptr"]), shape=state["shape"]),
        columns=ColumnStatistics(state["mean"].numpy(), state["variance"].numpy()),
        observed=state["observed"],
        first_weight=state["first_weight"],
        view=view,
        digest=state["digest"],
    )

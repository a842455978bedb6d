"""A partitioned graph on disk: a file for each rank, and one for the result on the first rank.

``user-dgl partition`` writes it once. A rank then reads its own file and never the whole graph.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import scipy.sparse as sp
import torch

from user_dgl.clustering.smoothed_view import SmoothedView
from user_dgl.config import Config, load_config, to_yaml
from user_dgl.config.schema import to_plain
from user_dgl.distributed.shards import ExchangePlan, RankData, Shard
from user_dgl.errors import InputError
from user_dgl.features.matrix import ColumnStatistics
from user_dgl.graph.parts import Part
from user_dgl.runtime.files import check_writable, write_atomically
from user_dgl.training.checkpoint import load_checkpoint, save_checkpoint

T = TypeVar("T")

# Settings that the parts depend on: a run with other values needs other parts.
_DECISIVE = ("seed", "data", "features", "structure", "model")
_REMEDY = "write the folder again with user-dgl partition"


class PartitionDirectory:
    """Files of a partitioned graph.

    Attributes
    ----------
    path : Path
    """

    config_file, whole_file = "config.yaml", "whole.pt"

    def __init__(self, path: Path):
        self.path = Path(os.path.abspath(path))

    def check_free(self) -> None:
        """Refuse a path that is not an empty or absent folder, or that cannot be written."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(f"{self.path}: not empty; choose another folder")
        # The folder is written under another name beside it, and then takes its place.
        if self.path.is_symlink() or self.path.is_mount() or self.path == Path.cwd():
            raise InputError(
                f"{self.path}: a link, a mount point or the current folder: name a folder inside "
                "of it"
            )
        check_writable(self.path.parent)

    def write(self, config: Config, rank_data: list[RankData], whole: dict[str, Any]) -> None:
        """Write the folder completely or not at all.

        Parameters
        ----------
        config : Config
            Has an absolute root of the data.
        rank_data : list of RankData
            The data of each rank.
        whole : dict
            The data of the first rank for the result: tensors and plain types.

        Raises
        ------
        InputError
        """
        self.check_free()
        aside = PartitionDirectory(self.path.with_name(f".{self.path.name}.part"))
        try:
            shutil.rmtree(aside.path, ignore_errors=True)
            aside.path.mkdir(parents=True)
            for rank, data in enumerate(rank_data):
                save_checkpoint(aside._rank_file(rank, len(rank_data)), _to_state(data))
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
        """Refuse settings or a number of ranks that the parts were not made for.

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
        smooth = config.model.encoder == "smooth"
        if smooth and made.learns_structure != config.learns_structure:
            changed.append("train.structure_lr")  # a view depends on whether A' is trained
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
        """Read what `write` got for the first rank; it takes memory when the result needs it."""
        return load_checkpoint(self.path / self.whole_file, _REMEDY, when_used=True)

    def read_rank_data(self, rank: int, size: int) -> RankData:
        """Read the data of a rank.

        Raises
        ------
        InputError
        """
        file = self._rank_file(rank, size)
        if not file.exists():
            raise InputError(f"{file}: not there: all machines must see the folder, or {_REMEDY}")
        return self.of_this_version(file.name, lambda: _from_state(load_checkpoint(file, _REMEDY)))

    def of_this_version(self, name: str, read: Callable[[], T]) -> T:
        """Call a function that reads a file; refuse a content of other keys than this version's.

        Raises
        ------
        InputError
        """
        try:
            return read()
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{self.path / name}: not of this version of user_dgl ({error}): {_REMEDY}"
            ) from None

    def _rank_file(self, rank: int, size: int) -> Path:
        return self.path / f"rank-{rank}-of-{size}.pt"


def _to_state(data: RankData) -> dict[str, Any]:
    """Return the content of a rank's file: tensors and plain types."""
    part, feat, view = data.shard.part, data.feat, data.view
    return {
        "part": {
            "nodes": part.nodes,
            "num_owned": part.num_owned,
            "pairs": part.pairs,
            "owned": part.owned,
            "src": part.src,
            "dst": part.dst,
            "weight": part.weight,
        },
        "nodes": _plan_to_state(data.shard.nodes),
        "pairs": _plan_to_state(data.shard.pairs),
        "pair_place": data.shard.pair_place,
        "numbers": {
            "num_nodes": data.num_nodes,
            "num_pairs": data.num_pairs,
            "num_observed": data.num_observed,
        },
        "feat": {
            "data": torch.from_numpy(feat.data),
            "indices": torch.from_numpy(feat.indices),
            "indptr": torch.from_numpy(feat.indptr),
        },
        "shape": feat.shape,
        "mean": torch.from_numpy(data.columns.mean),
        "variance": torch.from_numpy(data.columns.variance),
        "observed": data.observed,
        "edges": data.edges,
        "first_weight": data.first_weight,
        "digest": data.digest,
        "view": None if view is None else _view_to_state(view),
    }


def _plan_to_state(plan: ExchangePlan) -> dict[str, Any]:
    return {
        "sent": plan.sent,
        "sent_counts": plan.sent_counts,
        "received_counts": plan.received_counts,
    }


def _view_to_state(view: SmoothedView) -> dict[str, Any]:
    return {
        "points": view.points,
        "hops": view.hops,
        "self_share": view.self_share,
        "weight_power": view.weight_power,
        "kmeans": torch.from_numpy(view.kmeans),
        "clusters": torch.from_numpy(view.clusters),
        "centroids": view.centroids,
    }


def _from_state(state: dict[str, Any]) -> RankData:
    """Restore the data of a rank from the content of its file.

    Raises
    ------
    KeyError, TypeError
        The content is not of this version.
    """
    numbers, view = state["numbers"], state["view"]
    feat = {name: array.numpy() for name, array in state["feat"].items()}
    shard = Shard(
        Part(**state["part"]),
        ExchangePlan(**state["nodes"]),
        ExchangePlan(**state["pairs"]),
        state["pair_place"],
    )
    return RankData(
        shard=shard,
        num_nodes=numbers["num_nodes"],
        num_pairs=numbers["num_pairs"],
        num_observed=numbers["num_observed"],
        feat=sp.csr_matrix((feat["data"], feat["indices"], feat["indptr"]), shape=state["shape"]),
        columns=ColumnStatistics(state["mean"].numpy(), state["variance"].numpy()),
        observed=state["observed"],
        edges=state["edges"],
        first_weight=state["first_weight"],
        view=None
        if view is None
        else SmoothedView(
            **{**view, "kmeans": view["kmeans"].numpy(), "clusters": view["clusters"].numpy()}
        ),
        digest=state["digest"],
    )

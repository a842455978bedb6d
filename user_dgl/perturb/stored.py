"""Noisy graphs in files, for example attacked graphs, with the recipe that made them."""

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
import torch

import user_dgl
from user_dgl.config import Config
from user_dgl.config.schema import to_plain
from user_dgl.data import load_adjacency
from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare
from user_dgl.perturb.metattack import form_of

_RECIPE = "recipe.json"
_LONGEST_RECIPE = 10_000


def stored_graph(graph: Graph, path: Path, held_out: np.ndarray | None = None) -> Perturbed:
    """Read a noisy graph from a file of `scipy.sparse.save_npz` and compare it with the clean one.

    Parameters
    ----------
    graph : Graph
        The clean graph, N nodes.
    path : Path
        File with the adjacency (N, N), nodes in the same order. If the file has a recipe, it is
        added to the notes. Its weights are used if the clean graph has weights; with a recipe
        they are in the unit of these. If they are all equal, and the file does not say that they
        are weights, edges of the clean graph keep the weights that they have there, and others
        get 1.
    held_out : int64 (M,), optional
        Keys ``src * N + dst`` of pairs that are removed from the noisy graph.

    Raises
    ------
    InputError
        The file is missing or damaged, its graph has another number of nodes, or it was made from
        another clean graph.
    """
    noisy, notes = load_adjacency(path)
    if noisy.num_nodes != graph.num_nodes:
        remedy = "make it again from the graph of these settings"
        if noisy.num_nodes < graph.num_nodes:
            remedy = (
                "attacked graphs are often stored for the largest component only; if this one is, "
                "set data.largest_component=true"
            )
        raise InputError(
            f"{path}: {noisy.num_nodes} nodes, the clean graph has {graph.num_nodes}: {remedy}"
        )
    recipe = _read_recipe(path)
    if recipe is not None:
        _check_made_from(graph, path, recipe, held_out is not None)
    if held_out is not None:
        keys = np.setdiff1d(noisy.keys, held_out, assume_unique=True)
        kept = Graph.from_keys(noisy.num_nodes, keys).weighted_like(noisy)
        noisy = replace(kept, unit=noisy.unit)
    if graph.weight is None:
        noisy = replace(noisy, weight=None)
    elif noisy.weight is None and not (recipe or {}).get("weighted"):
        noisy = noisy.weighted_like(graph)
    elif recipe is not None:
        # Weights of an edge are the same in both graphs; a foreign file may have another unit.
        weight = noisy.edge_weight.double() * (noisy.unit / graph.unit)
        weight = weight.clamp(min=torch.finfo(torch.float32).tiny).float()
        noisy = replace(noisy, weight=weight, unit=graph.unit)
    if recipe is not None:
        notes = [*notes, f"made by {json.dumps(recipe)}"]
    return replace(compare(graph, noisy), notes=tuple(f"{path.name}: {n}" for n in notes))


def _check_made_from(graph: Graph, path: Path, recipe: dict[str, Any], holds_out: bool) -> None:
    """Refuse a noisy graph that was made from another clean graph than this one.

    Files of versions before 0.4.0 do not say from which. A graph of which all pairs were known may
    be used where some are held out.
    """
    made_from = recipe.get("graph")
    if made_from is None or (holds_out and "links" not in recipe):
        return
    if made_from != graph_digest(graph):
        raise InputError(
            f"{path}: made from another graph than that of these settings (other data, another "
            "seed of a synthetic graph, or other held-out pairs): make it again with user-dgl "
            "perturb"
        )


def graph_digest(graph: Graph) -> str:
    """Digest of the pairs of a graph, by which a file of noise names the clean graph."""
    return hashlib.sha256(graph.keys.tobytes()).hexdigest()[:16]


def write_graph(file: BinaryIO, graph: Graph, recipe: dict[str, Any]) -> None:
    """Write a graph so that `stored_graph` and `scipy.sparse.load_npz` can read it.

    The same graph and recipe always give the same bytes.

    Parameters
    ----------
    file : binary file
    graph : Graph
    recipe : dict
        As from `recipe_of`. It becomes the member ``recipe.json`` of the file.
    """
    content = io.BytesIO()
    sp.save_npz(content, graph.to_scipy(graph.data_weight))
    with zipfile.ZipFile(content, "a") as archive:
        # A ZipInfo has a fixed time; a name alone would get the current time.
        archive.writestr(zipfile.ZipInfo(_RECIPE), json.dumps(recipe))
    file.write(content.getbuffer())


def recipe_of(config: Config, graph: Graph) -> dict[str, Any]:
    """Return the settings that are needed to repeat the noise of a config on a clean graph."""
    noise = config.data.noise

    def seed_of(seed: int | None) -> int:
        return config.seed if seed is None else seed

    recipe: dict[str, Any] = {"user_dgl": user_dgl.__version__, "graph": graph_digest(graph)}
    recipe["kind"] = noise.kind
    if graph.weight is not None:
        recipe["weighted"] = True
    if noise.flips:
        recipe |= {"rate": noise.rate, "seed": seed_of(noise.seed)}
    if noise.kind == "file":
        recipe["file"] = noise.file
    if noise.kind == "metattack":
        form = form_of(noise.attack, graph.num_nodes)
        recipe["attack"] = to_plain(replace(noise.attack, form=form))
        if form == "exact":
            del recipe["attack"]["steps"], recipe["attack"]["block_nodes"]
    if config.task == "link_prediction":
        links = replace(config.links, seed=seed_of(config.links.seed))
        recipe |= {"task": config.task, "links": to_plain(links)}
    return recipe


def _read_recipe(path: Path) -> dict[str, Any] | None:
    """Read the recipe of a file; None if the file has none.

    Raises
    ------
    InputError
        The recipe is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        if _RECIPE not in archive.namelist():
            return None
        try:
            with archive.open(_RECIPE) as member:
                return dict(json.loads(member.read(_LONGEST_RECIPE)))
        except Exception as error:  # damaged bytes, or not JSON
            raise InputError(
                f"{path}: {_RECIPE}: damaged ({one_line(error)}): make the file again"
            ) from None

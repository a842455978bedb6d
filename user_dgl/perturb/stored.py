"""Noisy graphs in files, for example attacked graphs, with the recipe that made them."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

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
        added to the notes. Its weights are used if the clean graph has weights. If they are all
        equal, edges of the clean graph keep the weights that they have there, and others get 1.
    held_out : int64 (M,), optional
        Keys ``src * N + dst`` of pairs that are removed from the noisy graph.

    Raises
    ------
    InputError
        The file is missing or damaged, or its graph has another number of nodes.
    """
    noisy, notes = load_adjacency(path)
    if noisy.num_nodes != graph.num_nodes:
        raise InputError(
            f"{path}: {noisy.num_nodes} nodes, the clean graph has {graph.num_nodes}: attacked "
            "graphs are often stored for the largest component only; if this one is, set "
            "data.largest_component=true"
        )
    if held_out is not None:
        keys = np.setdiff1d(noisy.keys, held_out, assume_unique=True)
        noisy = Graph.from_keys(noisy.num_nodes, keys).weighted_like(noisy)
    if graph.weight is None:
        noisy = replace(noisy, weight=None)
    elif noisy.weight is None:
        noisy = noisy.weighted_like(graph)
    recipe = _read_recipe(path)
    if recipe is not None:
        notes = [*notes, f"made by {recipe}"]
    return replace(compare(graph, noisy), notes=tuple(f"{path.name}: {n}" for n in notes))


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


def recipe_of(config: Config, num_nodes: int) -> dict[str, Any]:
    """Return the settings that are needed to repeat the noise of a config on the same data."""
    noise = config.data.noise

    def seed_of(seed: int | None) -> int:
        return config.seed if seed is None else seed

    recipe: dict[str, Any] = {"user_dgl": user_dgl.__version__, "kind": noise.kind}
    if noise.flips:
        recipe |= {"rate": noise.rate, "seed": seed_of(noise.seed)}
    if noise.kind == "file":
        recipe["file"] = noise.file
    if noise.kind == "metattack":
        form = form_of(noise.attack, num_nodes)
        recipe["attack"] = to_plain(replace(noise.attack, form=form))
        if form == "exact":
            del recipe["attack"]["steps"], recipe["attack"]["block_nodes"]
    if config.task == "link_prediction":
        links = replace(config.links, seed=seed_of(config.links.seed))
        recipe |= {"task": config.task, "links": to_plain(links)}
    return recipe


def _read_recipe(path: Path) -> str | None:
    """Read the recipe of a file as one line of JSON; None if the file has no recipe.

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
                return json.dumps(json.loads(member.read(_LONGEST_RECIPE)))
        except Exception as error:  # damaged bytes, or not JSON
            raise InputError(
                f"{path}: {_RECIPE}: damaged ({one_line(error)}): make the file again"
            ) from None
